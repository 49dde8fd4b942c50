"""The product: one question, asked with five clients."""

import asyncio
import json
import subprocess
import urllib.request

import aiohttp
import httpx
import requests

HEADERS = {"Authorization": "Bearer abcdefgh-ABCDEFGH-12345678"}


def _urllib(url):
    with urllib.request.urlopen(urllib.request.Request(url, headers=HEADERS), timeout=20) as answer:
        return answer.read().decode()


def _curl(url):
    header = "Authorization: " + HEADERS["Authorization"]
    done = subprocess.run(["curl", "-fsS", "-H", header, url], capture_output=True, text=True, timeout=20)
    if done.returncode:
        raise OSError(done.stderr)
    return done.stdout


def _requests(url):
    answer = requests.get(url, headers=HEADERS, timeout=20)
    answer.raise_for_status()
    return answer.text


def _httpx(url):
    answer = httpx.get(url, headers=HEADERS, timeout=20)
    answer.raise_for_status()
    return answer.text


def _aiohttp(url):
    async def fetch():
        async with aiohttp.ClientSession(headers=HEADERS, raise_for_status=True) as session:
            async with session.get(url) as answer:
                return await answer.text()

    return asyncio.run(fetch())


CLIENTS = {"urllib": _urllib, "curl": _curl, "requests": _requests, "httpx": _httpx, "aiohttp": _aiohttp}


def usd(client, url):
    return json.loads(CLIENTS[client](url))["usd"]
