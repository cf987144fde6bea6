# The service in one image: no pip, no compiler, no secret, no test.
#   docker build --tag calcubot .
# BASE is any image with Python 3.11 or later and venv.
ARG BASE=python:3.14-slim-trixie

FROM ${BASE} AS build
COPY function/requirements.txt /build/
RUN python3 -m venv /opt/venv \
    && /opt/venv/bin/python -I -m pip install --quiet --no-cache-dir --no-compile --only-binary :all: \
        --require-hashes --requirement /build/requirements.txt \
    && /opt/venv/bin/python -I -m pip uninstall --quiet --yes pip \
    && /opt/venv/bin/python -m compileall -q --invalidation-mode unchecked-hash /opt/venv
COPY function /app/function
COPY sandbox /app/sandbox
RUN rm /app/function/requirements.* \
    && /opt/venv/bin/python -m compileall -q --invalidation-mode unchecked-hash /app

FROM ${BASE}
LABEL org.opencontainers.image.title="calcubot" \
      org.opencontainers.image.description="A Telegram bot that is a Python console calculator"
# The base's pip goes, /secrets is root's alone, and each uid of the policy's range has a name.
RUN rm -rf /usr/local/lib/python3.*/ensurepip /usr/local/lib/python3.*/site-packages/pip* \
        /usr/local/bin/pip* /root/.cache \
    && mkdir --mode 0700 /secrets \
    && for uid in $(seq 5000 5063); do \
        echo "guest$uid:x:$uid:$uid::/nonexistent:/usr/sbin/nologin" >>/etc/passwd; \
        echo "guest$uid:x:$uid:" >>/etc/group; \
    done
COPY --from=build /opt/venv /opt/venv
COPY --from=build /app /app
COPY policy.yaml /app/policy.yaml
ENV PATH=/opt/venv/bin:$PATH PYTHONPATH=/app PYTHONSAFEPATH=1
WORKDIR /app
EXPOSE 8000
# Patient, for an engine that replaces what it finds ill makes an overloaded machine's load worse.
HEALTHCHECK --interval=3s --timeout=10s --start-period=30s --retries=5 \
    CMD ["python", "-I", "-S", "-c", "import http.client as h; c = h.HTTPConnection('127.0.0.1', 8000, timeout=9); c.request('GET', '/health'); raise SystemExit(c.getresponse().status != 200)"]
CMD ["python", "-m", "gunicorn", "--config", "python:function.gunicorn_conf", "--bind", "0.0.0.0:8000"]
