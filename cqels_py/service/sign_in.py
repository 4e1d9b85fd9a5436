"""The page on which a browser gets the cookie with the token."""

from __future__ import annotations

SIGN_IN = """<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>Sign in · cqels</title>
<style>body { font: 16px sans-serif; margin: 4em auto; max-width: 22em; padding: 0 1em }
input, button { font: inherit; padding: .4em; width: 100%; box-sizing: border-box; margin: .3em 0 }</style>
<h1>cqels</h1>
<form>
  <label>Token of the server <input type="password" name="token" autocomplete="current-password" required autofocus></label>
  <button>Sign in</button>
  <p role="alert"></p>
</form>
<script>
  const form = document.querySelector("form");
  form.addEventListener("submit", async event => {
    event.preventDefault();
    const body = JSON.stringify({token: form.token.value});
    const answer = await fetch("/session", {method: "POST", headers: {"Content-Type": "application/json"}, body});
    if (answer.ok) location.href = "/";
    else form.querySelector("p").textContent = (await answer.json()).detail;
  });
</script>
"""
