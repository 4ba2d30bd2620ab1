"""Followed lists: what is added at their end, in order, after a position that the client keeps."""

from typing import Annotated, Generic, TypeVar

import msgspec

from retainer.kernel.http import Request
from retainer.kernel.query import others_of, read_pairs

T = TypeVar("T")


class Following(msgspec.Struct, frozen=True):
    """The address of a followed list; `others` are the parameters as sent, without the position."""

    base_url: str
    path: str
    others: str

    def link(self, after: int) -> str:
        return f"{self.base_url}{self.path}?{self.others}after={after}"


class FollowLinks(msgspec.Struct):
    """Where the list continues."""

    next: Annotated[str, "Address of what comes next, even if nothing has come yet."]


class FollowMeta(msgspec.Struct):
    """The position in the list."""

    next_after: Annotated[int, "The position to continue from: send it as `after`. Store it with what you have read."]
    has_more: Annotated[bool, "Whether there is more now. If false, the next request can wait with `Prefer`."]
    latest: Annotated[int, "Id of the account's newest event, whether or not this key and these parameters show it."]
    per_page: Annotated[int, "Maximum number of events in a response."]


class Followed(msgspec.Struct, Generic[T]):
    """What has come after a position."""

    data: list[T]
    links: FollowLinks
    meta: FollowMeta


def read_following(request: Request) -> Following:
    pairs = read_pairs(request) if request.query else []
    return Following(request.base_url, request.path, others_of(pairs, "after"))
