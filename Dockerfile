# The service in one image: no pip, no compiler, no secret, no test.
#   docker build --tag calcubot .
# MATHS=1 adds sympy, numpy and matplotlib, some 200 MB, a font of 5 MB for titles in Chinese, Japanese
# and Korean (Debian's), and serves the policy that allows them:
#   docker build --build-arg MATHS=1 --tag calcubot .
# BASE is any image with Python 3.11 or later and venv. REVISION and CREATED (RFC 3339) become labels.
ARG BASE=python:3.14-slim-trixie
ARG MATHS=

FROM ${BASE} AS build
ARG MATHS
COPY function/requirements.txt function/maths.txt /build/
RUN python3 -m venv /opt/venv \
    && /opt/venv/bin/python -I -m pip install --quiet --no-cache-dir --no-compile --only-binary :all: \
        --require-hashes --requirement "/build/$([ "$MATHS" ] && echo maths || echo requirements).txt" \
    && /opt/venv/bin/python -I -m pip uninstall --quiet --yes pip \
    && find /opt/venv -depth -type d -path '*/site-packages/*' -name tests -exec rm -r {} + \
    && /opt/venv/bin/python -m compileall -q --invalidation-mode unchecked-hash /opt/venv
COPY function /app/function
COPY sandbox /app/sandbox
COPY tools/sbom.py /build/
RUN PYTHONPATH=/app /opt/venv/bin/python /build/sbom.py >/app/sbom.cdx.json \
    && rm /app/function/requirements.* /app/function/maths.* \
    && /opt/venv/bin/python -m compileall -q --invalidation-mode unchecked-hash /app

FROM ${BASE}
ARG MATHS
ARG VERSION=1.0.0
ARG REVISION=unknown
ARG CREATED=unknown
LABEL org.opencontainers.image.title="calcubot" \
      org.opencontainers.image.description="A Telegram bot that is a Python console calculator" \
      org.opencontainers.image.version="${VERSION}" \
      org.opencontainers.image.revision="${REVISION}" \
      org.opencontainers.image.created="${CREATED}"
# The base's pip goes, /secrets is root's alone, and each uid of the policy's range has a name.
RUN rm -rf /usr/local/lib/python3.*/ensurepip /usr/local/lib/python3.*/site-packages/pip* \
        /usr/local/bin/pip* /usr/lib/python3.*/ensurepip /usr/share/python-wheels /root/.cache \
    && mkdir --mode 0700 /secrets \
    && for uid in $(seq 5000 5063); do \
        echo "guest$uid:x:$uid:$uid::/nonexistent:/usr/sbin/nologin" >>/etc/passwd; \
        echo "guest$uid:x:$uid:" >>/etc/group; \
    done
RUN [ -z "$MATHS" ] || ! command -v apt-get >/dev/null || { apt-get update -qq \
    && apt-get install -qq --yes --no-install-recommends fonts-wqy-microhei \
    && rm -rf /var/lib/apt/lists/* /var/cache/apt /var/log/*; }
COPY --from=build /opt/venv /opt/venv
COPY --from=build /app /app
COPY policy.yaml /app/policy.yaml
ENV PATH=/opt/venv/bin:$PATH PYTHONPATH=/app PYTHONSAFEPATH=1 PORT=8000 \
    POLICY_PATH=${MATHS:+/app/sandbox/policies/maths.yaml}
WORKDIR /app
EXPOSE 8000
# Patient, for an engine that replaces what it finds ill makes an overloaded machine's load worse.
# A bare socket: http.client would add a quarter to the probe's CPU time (78 ms, 100 ms).
HEALTHCHECK --interval=5s --timeout=10s --start-period=30s --retries=5 \
    CMD ["python", "-I", "-S", "-c", "import os, socket; s = socket.create_connection(('127.0.0.1', int(os.environ['PORT'])), 9); s.sendall(b'GET /health/ready HTTP/1.0\\r\\n\\r\\n'); raise SystemExit(b' 200 ' not in s.recv(99))"]
CMD ["python", "-m", "gunicorn", "--config", "python:function.gunicorn_conf"]
