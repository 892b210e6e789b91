"""A model for tests that answers with text, piece by piece."""

from cog import BasePredictor, ConcatenateIterator, Input


class Writer(BasePredictor):
    def predict(
        self,
        prompt: str = Input(description="What to write about"),
        pieces: int = Input(default=3, ge=0, le=100),
    ) -> ConcatenateIterator[str]:
        for i in range(pieces):
            yield f"{prompt} {i}, "
