"""Operations by external id: GET, PATCH, PUT and DELETE of the record that has it; PUT can create it (decision 21).

Each calls the operation by id. A resource whose table has external ids has them for each of its operations by id.
"""

from collections.abc import Sequence
from functools import cache
from types import MappingProxyType

from msgspec.structs import replace
from sqlalchemy import Select, Table, bindparam, select

from retainer.errors import InvalidValue, Refusal, invalid, not_found
from retainer.kernel.answers import CreatedRecord
from retainer.kernel.body import RequestBody
from retainer.kernel.resource import Call, Operation
from retainer.store.constraints import singular
from retainer.store.tx import Tx
from retainer.values.texts import CODE, clean

MARK = "/external:"
"""What precedes an external id in a path."""
ABOUT = MappingProxyType(
    {
        "GET": "Read the {noun} with this external id, as with `GET {path}`.",
        "PATCH": "Change the {noun} with this external id, as with `PATCH {path}`.",
        "PUT": """Create the {noun} with this external id, or change it.

If no {noun} has it, the body creates one, as with POST: 201. Otherwise the body changes it, as with PATCH, and omitted
fields keep their values: 200. Fields that POST requires are required only to create. The path sets `external_id`.
`If-None-Match: *` only creates.
""",
        "DELETE": "Delete the {noun} with this external id, as with `DELETE {path}`.",
    }
)


def operations_of(own: Sequence[Operation], table: Table | None) -> list["ByExternalId"]:
    if table is None or "external_id" not in table.c:
        return []
    create = next(each for each in own if each.created)
    found = [ByExternalId(each, create, table) for each in own if each.path.endswith("}")]
    return sorted(found, key=lambda each: not each.upserts)  # in the reference, PUT creates the record for the others


class ByExternalId(Operation):
    """An operation on the record with an external id: that by id, once the record is found.

    PUT calls the operation `create` if there is no such record.
    """

    def __init__(self, by_id: Operation, create: Operation, table: Table) -> None:
        about = ABOUT[by_id.method].format(noun=singular(table), path=by_id.path)
        declared = by_id.declared._replace(about=about, arguments={})
        super().__init__(by_id.resource, by_id.method, f"{MARK}{{external_id}}", declared, by_id.representations)
        self.by_id: Operation = by_id
        self.create, self.table = create, table
        self.query, self.body, self.upserts = by_id.query, by_id.body, by_id.method == "PUT"
        self.id = create.id.replace("create", "upsert", 1) if self.upserts else f"{by_id.id}ByExternalId"

    def call(self, tx: Tx, call: Call) -> object:
        """Call the operation by id, or create the record. Raises `not_found` and `precondition_failed`."""
        tx.snapshot()
        external_id, noun = read_external_id(call.ids["external_id"]), singular(self.table)
        record_id: int | None = tx.value(_with_external_id(self.table), external_id=external_id)
        if self.upserts and call.sent is not None:
            call = replace(call, sent=self._body(tx, call.sent, external_id, is_new=record_id is None))
        if record_id is not None:
            if self.upserts and call.request.header("IF_NONE_MATCH") is not None:
                message = f"The {noun} {record_id} has this external id. Leave If-None-Match out to change it."
                raise Refusal("precondition_failed", message)
            call.request.record = f"{self.resource.path}/{record_id}"
            return self.by_id.call(tx, replace(call, ids={self.by_id.parameters[0]: str(record_id)}))
        if not self.upserts:
            raise not_found(noun)
        if call.request.header("IF_MATCH") is not None:
            message = f"No {noun} has this external id, so none is in the state of If-Match. Leave it out."
            raise Refusal("precondition_failed", message)
        return CreatedRecord(self.create.call(tx, replace(call, ids={})))

    def _body(self, tx: Tx, sent: RequestBody, external_id: str, *, is_new: bool) -> RequestBody:
        """Return the body with the external id of the path; note an error if it has another one, or if it is blank."""
        named = sent.values.get("external_id") if "external_id" in sent.fields else external_id
        if named != external_id:
            tx.error("external_id", "Must be that of the path. Leave it out.")
        elif not external_id:
            tx.error("external_id", "Must not be blank in the path.")
        fields = sent.fields | {"external_id": external_id}
        return RequestBody(fields, sent.model, "Create" if is_new else "Update", sent.refusal)


@cache
def _with_external_id(table: Table) -> Select[int]:
    return select(table.c.id).where(table.c.external_id == bindparam("external_id"))


def read_external_id(text: str) -> str:
    """Return an external id of a path, whose bytes WSGI passes as Latin-1.

    Raises `bad_request` unless it is UTF-8, and `validation_failed` for characters that no external id has.
    """
    try:
        return clean(text.encode("latin-1").decode(), CODE)
    except UnicodeError:
        raise Refusal("bad_request", "The external id in the path must be UTF-8, percent-encoded.") from None
    except InvalidValue as error:
        raise invalid({"external_id": [str(error)]}) from None
