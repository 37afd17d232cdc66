"""Panels: functions of matplotlib axes, and figures put together from them."""
