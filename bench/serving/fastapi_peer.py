"""FastAPI with async handlers, one worker: `uvicorn fastapi_peer:app`."""

from fastapi import FastAPI, Request
from fastapi.responses import JSONResponse
from iris import classify

app = FastAPI()


@app.post("/noop")
async def noop(request: Request):
    payload = await request.json()
    return "versicolor" if payload["petal_length"] > 2 else "setosa"


@app.post("/echo")
async def echo(request: Request):
    # Returned as a response, because FastAPI would walk through every value of a plain object.
    return JSONResponse(await request.json())


@app.post("/iris")
async def iris(request: Request):
    return classify(await request.json())
