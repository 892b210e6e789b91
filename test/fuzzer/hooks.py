"""What Schemathesis has to know that the OpenAPI document cannot say.

Two things are here: real ids, which take the place of generated ones so that
requests get past "not found", and the rules that no schema expresses, each
with the refusal it causes. A refusal that is not listed is a finding. The
answers are counted for the test that runs Schemathesis.
"""

import atexit
import base64
import collections
import itertools
import json
import os
import re
import urllib.parse

import schemathesis
from schemathesis.core.parameters import ParameterLocation
from schemathesis.specs.openapi.checks import missing_required_header, negative_data_rejection, positive_data_acceptance

with open(os.environ["ATELIER_FUZZ_IDS"], encoding="utf-8") as file:
    IDS = json.load(file)

# Operations that end what they name get an id that nothing else needs, and
# keep the generated one after that, unless other requests need it: Schemathesis
# also uses ids that it has seen in answers.
ENDING = {
    "deleteAccessToken",
    "deleteBoard",
    "deleteCompanyAccessToken",
    "deleteFlow",
    "deleteLibraryItem",
    "deleteNode",
    "deleteResumableUpload",
    "deleteUpload",
    "removeDomain",
    "removeMember",
    "removeTeam",
    "removeTeamMember",
    "revokeInvitation",
}
SPARE = {name: itertools.chain([one], itertools.repeat(None)) for name, one in IDS["spare"].items()}

NEEDED = {one for part in (IDS, IDS["personal"], IDS["team"]) for one in part.values() if isinstance(one, str)}

# A stream of a board or an account lasts until its reader leaves, so it is asked
# for with an id that no board has.
ENDLESS = {"streamBoard", "streamEvents"}
NOBODY = "0" * 20

# Random bytes are no file that the service takes: every other upload is this
# picture.
PICTURE = base64.b64decode(IDS["picture"])
TURNS = itertools.count()

# Refusals of valid requests, by rules that no schema can express:
# (operations, code, path, message, the rule). Nothing in the first place stands
# for all operations.
EXPLAINED = [
    (None, "INVALID_REQUEST", "cursor", "", "only the service makes cursors"),
    (None, "INVALID_REQUEST", "body", "Nested more than 64 deep", "unknown fields may be as deep as they like"),
    (None, "ACCOUNT_SELECTION_INVALID", None, "", "which accounts a credential reaches follows from its kind"),
    (None, "CONFLICT", None, "", "If-Match names a revision that the board does not have"),
    ({"pollDevice", "pollDeviceByBody"}, "AUTHORIZATION_PENDING", None, "", "nobody has approved"),
    ({"pollDevice", "pollDeviceByBody"}, "SLOW_DOWN", None, "", "polls have a pace"),
    ({"pollDevice", "pollDeviceByBody"}, "DEVICE_CODE_EXPIRED", None, "", "the code never was"),
    ({"startDevice"}, "PAYLOAD_TOO_LARGE", None, "", "strangers may send a kilobyte"),
    ({"deleteMe"}, "INVALID_REQUEST", "email", "not the e-mail address of the account", "it must be one's own"),
    ({"createCompanyAccessToken"}, "INVALID_REQUEST", "uid", "must act for a member", "it must be a member"),
    ({"changeCompany"}, "INVALID_REQUEST", "(name|time_zone)", "At least one setting to change is required", "unknown fields change nothing"),
    ({"changeCompany"}, "INVALID_REQUEST", "time_zone", "This is not a time zone", "the list of time zones"),
    ({"setMember", "setTeamMember", "addDomain", "createInvitation"}, "INVALID_REQUEST", "(role|company_role|team_role)", "has no role", "the role must be there"),
    ({"addDomain", "createInvitation"}, "INVALID_REQUEST", "team_id", "has no such team", "the team must be there"),
    ({"addDomain", "createInvitation"}, "INVALID_REQUEST", "team_role", "requires the team", "the two fields go together"),
    ({"createInvitation"}, "INVALID_REQUEST", "uses", "can be used once", "the two fields go together"),
    ({"addDomain"}, "INVALID_REQUEST", "domain", "(already|public mail service|at most .* domains)", "domains are claimed once"),
    ({"verifyDomain"}, "INVALID_REQUEST", "domain", "has no TXT record", "the record must be there"),
    ({"deleteRole", "deleteTeamRole"}, "INVALID_REQUEST", "name", "(can't be deleted|have this role)", "some roles must stay"),
    ({"setRole", "setTeamRole"}, "INVALID_REQUEST", "name", "at most .* roles", "there can be 100"),
    ({"setRole"}, "INVALID_REQUEST", "permissions", "admin always has all permissions", "the role admin stays as it is"),
    ({"setTeamRole"}, "INVALID_REQUEST", "plugin_kinds", "", "* stands alone"),
    ({"listAudit"}, "INVALID_REQUEST", "act", "Must be an act", "the list of acts"),
    ({"reportUsage", "reportRuns"}, "INVALID_REQUEST", "end_utc", "", "the end comes after the start, by ten years at most"),
    ({"reportUsage"}, "INVALID_REQUEST", "group_by", "", "no group twice"),
    ({"listLedger"}, "INVALID_REQUEST", "(start|end)_utc", "", "the end comes after the start, and sums by day cover 366 days at most"),
    ({"addNode", "changeNode", "changeNodes"}, "INVALID_REQUEST", r"((create|update)\.\d+\.)?ref", "", "what a node shows must be there"),
    ({"changeNodes"}, "INVALID_REQUEST", r"(update|delete)\.\d+(\.id)?", "", "the node must be there, once"),
    ({"changeNodes"}, "INVALID_REQUEST", "body", "A request must change 1 to 1000 nodes", "the three lists together"),
    ({"changeNode", "changeNodes"}, "INVALID_REQUEST", r"(body|update\.\d+)", "", "unknown fields change nothing"),
    ({"createGeneration", "previewCost"}, "INVALID_REQUEST", r"inputs(\..*)?", "", "the tool says what it takes"),
    ({"createGeneration", "previewCost"}, "INVALID_REQUEST", "metadata", "at most 8192 bytes", "it is counted in bytes of JSON"),
    ({"createGeneration", "previewCost", "setBudget"}, "INVALID_REQUEST", "webhook_url", "", "which addresses are sent to"),
    ({"createGeneration", "previewCost"}, "INVALID_REQUEST", ".*", "Did you mean", "nearly a known name"),
    ({"createGeneration", "previewCost"}, "INVALID_REQUEST", "team_id", "Send the team as the query parameter", "nearly a known name"),
    ({"createGeneration", "previewCost"}, "NUM_RESULTS_LIMIT", None, "", "the tool says how many"),
    ({"createGeneration"}, "INVALID_REQUEST", r"files(\.\d+)?", "", "each file is named by one input"),
    ({"createGeneration", "createUpload"}, "INVALID_REQUEST", "(body|file)", "(headers of a part|is damaged|can't be read)", "names of further parts, and what is in a file"),
    ({"createGeneration", "createUpload"}, "UNSUPPORTED_MEDIA_TYPE", None, "", "the bytes of a file decide what it is"),
    ({"createFlow", "changeFlow"}, "INVALID_REQUEST", ".*", "", "the tools say what the steps take"),
    ({"createFlow", "changeFlow"}, "FORBIDDEN", None, "", "who may share a flow"),
    ({"createOperatorGrant"}, "INSUFFICIENT_BALANCE", None, "", "an account cannot lose more tokens than it has"),
    ({"createResumableUpload"}, "UPLOAD_TOO_LARGE", None, "", "the operator says how large a file may be"),
    ({"createResumableUpload"}, "STORAGE_QUOTA_EXCEEDED", None, "", "the account has so much storage"),
    ({"createResumableUpload"}, "IDEMPOTENCY_KEY_CONFLICT", None, "", "the key was used for another upload"),
    ({"createResumableUpload"}, "INVALID_REQUEST", "Upload-Metadata", "", "pairs of a name and a value in base64"),
    ({"appendResumableUpload"}, "UPLOAD_OFFSET_CONFLICT", None, "", "the offset is that of the upload"),
    ({"appendResumableUpload"}, "UPLOAD_CHECKSUM_MISMATCH", None, "", "the checksum is that of the body"),
    ({"appendResumableUpload"}, "INVALID_REQUEST", "Upload-Checksum", "", "Schemathesis sends 0 for this pattern"),
    ({"appendResumableUpload"}, "UPLOAD_TOO_LARGE", None, "", "the upload says how many bytes it lacks"),
]

# Requests that break the schema and are taken all the same, with the reason.
TAKEN = [
    ({"createUpload", "createGeneration"}, "parts of a form that are for somebody else are passed over"),
]


def is_id(value):
    return isinstance(value, str) and re.fullmatch(r"[A-Za-z0-9]{20}", value) is not None


def is_long_id(value):
    return isinstance(value, str) and re.fullmatch(r"([A-Za-z0-9]{20}:)?[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", value) is not None


def names_account(value):
    """Tells whether a parameter has the form of the ids of accounts, or of a
    list of them. Any number of letters and digits has."""
    return isinstance(value, str) and re.fullmatch(r"[A-Za-z0-9]+(,[A-Za-z0-9]+)*", value) is not None


def name_of(case):
    return case.operation.definition.raw.get("operationId")


@schemathesis.hook
def before_call(context, case, kwargs):
    """Puts real ids where valid ones were generated."""
    name = name_of(case)
    query = case.query or {}
    for parameter in ("team_id", "company_id"):
        if names_account(query.get(parameter)):
            query[parameter] = IDS[parameter]
    own = IDS["team" if query.get("team_id") else "personal"]
    boards = query.get("board_id")
    if name == "streamEvents" and (not boards or isinstance(boards, str) and all(is_id(one) for one in boards.split(","))):
        query["board_id"] = NOBODY
        case.query = query

    path = case.path_parameters or {}
    if name == "setTeamRole" and path.get("role") in ("admin", "member"):
        path["role"] = "painter"  # the credential's own role stays as it is
    for parameter, value in list(path.items()):
        if isinstance(value, str):
            value = urllib.parse.unquote(value)
        if not (is_id(value) or is_long_id(value)):
            continue
        real = NOBODY if name in ENDLESS else own.get(parameter, IDS.get(parameter))
        last = parameter == list(path)[-1]
        if name in ENDING and last:
            real = next(SPARE.get(parameter, itertools.repeat(None)))
            if real is None and value in NEEDED:
                real = re.sub("[0-9A-Za-z]", "0", value)
        if real is not None:
            path[parameter] = real

    body = case.body
    if name == "createUpload" and isinstance(body, bytes) and next(TURNS) % 2 == 0:
        case.body = PICTURE
    if not isinstance(body, dict) or case.meta is None or case.meta.is_negative_at(ParameterLocation.BODY):
        return
    payload = body.get("payload", body)
    if isinstance(payload, dict):
        if is_id(payload.get("tool_id")):
            payload["tool_id"] = IDS["tool_id"]
            payload["tool_fields_hash"] = IDS["tool_fields_hash"]
        if is_id(payload.get("uid")):
            payload["uid"] = IDS["uid"]
        if is_id(payload.get("account_id")):
            payload["account_id"] = IDS["uid"]
        if is_id(payload.get("team_id")) and name in {"addDomain", "createInvitation"}:
            payload["team_id"] = IDS["team_id"]
        if is_long_id(payload.get("library_id")):
            payload["library_id"] = own["library_id"]


COUNTS = collections.Counter()  # answers by operation and status


@schemathesis.hook
def after_call(context, case, response):
    COUNTS[f"{name_of(case)} {response.status_code}"] += 1


@atexit.register
def write_counts():
    with open(os.environ["ATELIER_FUZZ_COUNTS"], "w", encoding="utf-8") as file:
        json.dump(COUNTS, file)


def explain(case, response):
    """Tells which listed rule refused a valid request, if any."""
    if case.method == "HEAD" and response.status_code == 400:
        return "the error of a HEAD request has no body that could name the rule"
    try:
        error = json.loads(response.content)["error"]
    except (ValueError, KeyError, TypeError):
        return None
    problems = error["details"].get("fields") or [{"path": "", "message": error["message"]}]
    reasons = []
    for problem in problems:
        for operations, code, path, message, reason in EXPLAINED:
            if (
                (operations is None or name_of(case) in operations)
                and code == error["code"]
                and (path is None or re.fullmatch(path, problem["path"], re.DOTALL))
                and re.search(message, problem["message"])
            ):
                reasons.append(reason)
                break
        else:
            return None
    return "; ".join(reasons)


@schemathesis.check
def valid_data_is_accepted(ctx, response, case):
    """positive_data_acceptance, with the rules that no schema expresses."""
    if case.meta is not None and any(part.mode.is_negative for part in case.meta.components.values()):
        return None  # one invalid part makes the whole invalid, whatever the others try
    if response.status_code >= 400 and explain(case, response):
        return None
    return positive_data_acceptance(ctx, response, case)


@schemathesis.check
def invalid_data_is_rejected(ctx, response, case):
    """negative_data_rejection, with what is passed over on purpose."""
    if any(name_of(case) in operations for operations, _ in TAKEN):
        return None
    if is_unknown_version(case, response):
        return None
    if response.status_code == 412:
        return None  # refused before the body is looked at: If-Match names another revision
    if response.status_code < 400 and any(name.lower() == "x-schemathesis-unknown-property" for name in case.headers or {}):
        return None  # headers that nobody knows are for somebody else
    return negative_data_rejection(ctx, response, case)


@schemathesis.check
def missing_header_is_rejected(ctx, response, case):
    """missing_required_header, with the status that the tus protocol asks for."""
    if is_unknown_version(case, response):
        return None
    return missing_required_header(ctx, response, case)


def is_unknown_version(case, response):
    """Tells whether a request was refused for its version of the tus protocol."""
    if response.status_code != 412 or "esumableUpload" not in name_of(case):
        return False
    versions = [value for name, value in (case.headers or {}).items() if name.lower() == "tus-resumable"]
    return versions != ["1.0.0"]


@schemathesis.serializer("application/octet-stream", "application/offset+octet-stream")
def as_bytes(ctx, value):
    return value if isinstance(value, bytes) else str(value).encode()
