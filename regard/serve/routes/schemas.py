"""Requests and replies of the routes under `/v1`."""

import base64
import binascii
import json
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, JsonValue

from regard.serve.errors import invalid


class Body(BaseModel):
    """A request; unknown fields are refused."""

    model_config = ConfigDict(extra="forbid", allow_inf_nan=False)


class Upload(Body):
    """An image, a video or a recording."""

    data: str = Field(description="The file in base64; `data:…;base64,` may stand before it.")
    text: str | None = Field(None, description="The text, for models that read both.")

    @classmethod
    def of(cls, content: bytes, text: str | None = None) -> "Upload":
        """Return an upload of bytes."""
        return cls(data=base64.b64encode(content).decode(), text=text)

    def decode(self) -> bytes:
        """Return the bytes of the file."""
        _, _, data = self.data.rpartition(",") if self.data.startswith("data:") else ("", "", "")
        try:
            return base64.b64decode(data or self.data, validate=True)
        except (binascii.Error, ValueError):
            raise invalid("`data` must be a file in base64, but is not.") from None


def from_json(value: Any) -> Any:
    """Return a field of a form, which is a text, as the value that it stands for."""
    if not isinstance(value, str):
        return value
    try:
        return json.loads(value)
    except (ValueError, RecursionError):
        return value


Source = Annotated[str | Upload, Field(description="A text, or a file for other models.")]
Sources = Annotated[
    Source | list[Source], Field(description="One source or several; several give several results.")
]
Model = Annotated[str | None, Field(description="Name of the model; the first if not given.")]
Search = Annotated[
    dict[str, JsonValue],
    BeforeValidator(from_json),
    Field(description="Search settings, such as `beams` and `temperature`, as in a recipe."),
]


class SearchRequest(Body):
    """A request that searches for targets."""

    model: Model = None
    search: Search = Field(default_factory=dict)
    prefix: str = Field("", description="The beginning of every prediction.")


class PredictRequest(SearchRequest):
    """Sources to predict for."""

    sources: Sources
    num_best: int = Field(1, ge=1, le=1000, description="Predictions per source.")
    stream: bool = Field(False, description="Whether to send events while one source is searched.")


class AlternativesRequest(SearchRequest):
    """A source whose prediction gets the most likely tokens at each position."""

    source: Source
    num: int = Field(5, ge=1, le=100, description="Tokens per position.")


class BeamRequest(SearchRequest):
    """A source whose beam tree is asked for."""

    source: Source


class AttentionRequest(Body):
    """A source whose attention weights are asked for."""

    model: Model = None
    source: Source
    target: str | None = Field(None, description="The target; the prediction if not given.")
    layers: Literal["mean", "all"] = Field(
        "mean", description="The mean over layers and heads, or all of them."
    )


class EmbedRequest(Body):
    """Sources whose vectors are asked for."""

    model: Model = None
    sources: Sources
    layer: int | None = Field(None, ge=0, le=1000, description="Layer; the last if not given.")
    pooling: Literal["summary", "mean", "first", "final"] | None = None


class EmbeddingsRequest(BaseModel):
    """A request in the shape of OpenAI; fields that have no effect here are ignored."""

    model_config = ConfigDict(extra="ignore", allow_inf_nan=False)

    model: str
    input: str | list[str]
    encoding_format: Literal["float", "base64"] = "float"


class ErrorReply(BaseModel):
    """The fault of a request, in one sentence."""

    error: str


class EmbeddingsError(BaseModel):
    """An error in the shape of OpenAI."""

    message: str
    type: str
    param: str | None
    code: str | None


class EmbeddingsErrorReply(BaseModel):
    """The fault of a request, in the shape of OpenAI."""

    error: EmbeddingsError


class PredictionReply(BaseModel):
    """A prediction; numbers that are not finite are null."""

    text: str
    log_prob: float | None
    tokens: list[str]
    token_log_probs: list[float | None]
    alternatives: list[list[tuple[str, float | None]]] | None = Field(
        None, description="The most likely tokens at each position, if they were asked for."
    )
    image: str | None = Field(None, description="The predicted image: PNG as a data URL.")


class ResultReply(BaseModel):
    """The predictions of a source, the best one first."""

    source: str | None = Field(description="The text of the source; null for a file.")
    predictions: list[PredictionReply]


class PredictReply(BaseModel):
    """The predictions of each source, in the order of the request."""

    model: str
    results: list[ResultReply]


class AttentionReply(BaseModel):
    """Attention weights of a target over its source."""

    model: str
    source: list[str] = Field(description="Labels of the columns.")
    target: list[str] = Field(description="Labels of the rows.")
    kind: str = Field(description="`attention`, or a saliency for models without attention.")
    grid: list[int] | None = Field(description="Rows and columns of the cells of an image.")
    weights: list[Any] = Field(
        description="(target, source); with `all` layers (layer, head, target, source)."
    )


class BeamNodeReply(BaseModel):
    """A hypothesis, by its last token."""

    id: int
    parent: int | None
    step: int
    token: str
    log_prob: float | None
    total: float | None
    is_finished: bool
    rank: int | None


class BeamReply(BaseModel):
    """All hypotheses that a beam search kept or finished."""

    model: str
    source: str | None
    prediction: str
    nodes: list[BeamNodeReply]


class EmbedReply(BaseModel):
    """One vector per source."""

    model: str
    vectors: list[list[float | None]]


class ModelReply(BaseModel):
    """A run that is served."""

    id: str
    object: Literal["model"]
    created: int
    owned_by: str
    status: Literal["ready", "failed"]
    task: str | None = None
    modality: str | None = None
    parameters: int | None = None
    languages: list[str] | None = None
    features: list[str] = []


class ModelsReply(BaseModel):
    """All runs."""

    object: Literal["list"]
    data: list[ModelReply]


class EmbeddingReply(BaseModel):
    """A vector in the shape of OpenAI."""

    object: Literal["embedding"]
    index: int
    embedding: list[float] | str


class EmbeddingsReply(BaseModel):
    """Vectors in the shape of OpenAI."""

    object: Literal["list"]
    data: list[EmbeddingReply]
    model: str
    usage: dict[str, int]
