"""Checks Bot API calls against the types of two client libraries, which know every member."""

import inspect
from typing import Any

import aiogram.methods
import telebot
from aiogram.types import TelegramObject
from telebot import types


def check_against_libraries(call: dict[str, Any]) -> None:
    """Fail unless aiogram and pyTelegramBotAPI know the method and every member of the call."""
    method, members = call["method"], {k: v for k, v in call.items() if k != "method"}
    model = getattr(aiogram.methods, method[0].upper() + method[1:])
    _check_members(model.model_validate(members))
    _check_pytelegrambotapi(method, members)


def _check_members(value: Any) -> None:
    if isinstance(value, list):
        for each in value:
            _check_members(each)
    elif isinstance(value, TelegramObject | aiogram.methods.TelegramMethod):
        assert not value.model_extra
        for name in value.model_fields_set:
            _check_members(getattr(value, name))


def _check_pytelegrambotapi(method: str, members: dict[str, Any]) -> None:
    snake = "".join(f"_{c.lower()}" if c.isupper() else c for c in method)
    inspect.signature(getattr(telebot.TeleBot, snake)).bind(None, **members)
    _check_content(members)
    if "reply_parameters" in members:
        types.ReplyParameters(**members["reply_parameters"])
    for result in members.get("results", []):
        given = {name: value for name, value in result.items() if name != "type"}
        content = given.pop("input_message_content")
        inspect.signature(types.InputTextMessageContent).bind(**content)
        _check_content(content)
        types.InlineQueryResultArticle(
            **given, input_message_content=types.InputTextMessageContent(content["message_text"])
        ).to_json()


def _check_content(content: dict[str, Any]) -> None:
    for entity in content.get("entities", []):
        types.MessageEntity(**entity).to_json()
    types.LinkPreviewOptions(**content.get("link_preview_options", {})).to_json()
