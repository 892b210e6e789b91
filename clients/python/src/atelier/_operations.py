# Generated from api/openapi.yaml by build/clients. Do not edit.
"""Method, path and rules of each operation."""

from ._rules import Operation

START_DEVICE = Operation(
    method="POST",
    path="/auth/device/start",
    repeatable=True,
)
POLL_DEVICE = Operation(
    method="GET",
    path="/auth/device/poll",
    query=(
        "device_code",
    ),
    repeatable=True,
)
POLL_DEVICE_BY_BODY = Operation(
    method="POST",
    path="/auth/device/poll",
)
REFRESH_TOKEN = Operation(
    method="POST",
    path="/auth/token/refresh",
    repeatable=True,
)
CREATE_WEB_TOKEN = Operation(
    method="POST",
    path="/auth/session/token",
)
END_SESSION = Operation(
    method="DELETE",
    path="/sessions/{session_id}",
    repeatable=True,
    signed=True,
)
REVOKE_DEVICE = Operation(
    method="POST",
    path="/auth/device/revoke",
    headers={"device_id": "X-Device-Id"},
    repeatable=True,
    signed=True,
)
SIGN_OUT_EVERYWHERE = Operation(
    method="POST",
    path="/auth/sign-out-everywhere",
    repeatable=True,
    signed=True,
)
GET_ME = Operation(
    method="GET",
    path="/me",
    repeatable=True,
    signed=True,
)
DELETE_ME = Operation(
    method="DELETE",
    path="/me",
    repeatable=True,
    signed=True,
)
EXPORT_ME = Operation(
    method="GET",
    path="/me/export",
    repeatable=True,
    signed=True,
)
CLAIM_TOP_UP = Operation(
    method="POST",
    path="/me/top-up",
    signed=True,
)
LIST_LEDGER = Operation(
    method="GET",
    path="/ledger",
    query=(
        "group_by",
        "start_utc",
        "end_utc",
        "team_id",
        "limit",
        "cursor",
    ),
    selects_team=True,
    repeatable=True,
    signed=True,
)
LIST_DEVICES = Operation(
    method="GET",
    path="/devices",
    query=(
        "limit",
        "cursor",
    ),
    repeatable=True,
    signed=True,
)
LIST_ACCESS_TOKENS = Operation(
    method="GET",
    path="/access-tokens",
    query=(
        "limit",
        "cursor",
    ),
    repeatable=True,
    signed=True,
)
CREATE_ACCESS_TOKEN = Operation(
    method="POST",
    path="/access-tokens",
    signed=True,
)
DELETE_ACCESS_TOKEN = Operation(
    method="DELETE",
    path="/access-tokens/{token_id}",
    repeatable=True,
    signed=True,
)
REGENERATE_ACCESS_TOKEN = Operation(
    method="POST",
    path="/access-tokens/{token_id}/regenerate",
    signed=True,
)
LIST_COMPANY_ACCESS_TOKENS = Operation(
    method="GET",
    path="/companies/{company_id}/access-tokens",
    query=(
        "limit",
        "cursor",
    ),
    repeatable=True,
    signed=True,
)
CREATE_COMPANY_ACCESS_TOKEN = Operation(
    method="POST",
    path="/companies/{company_id}/access-tokens",
    signed=True,
)
DELETE_COMPANY_ACCESS_TOKEN = Operation(
    method="DELETE",
    path="/companies/{company_id}/access-tokens/{token_id}",
    repeatable=True,
    signed=True,
)
REGENERATE_COMPANY_ACCESS_TOKEN = Operation(
    method="POST",
    path="/companies/{company_id}/access-tokens/{token_id}/regenerate",
    signed=True,
)
LIST_COMPANIES = Operation(
    method="GET",
    path="/companies",
    repeatable=True,
    signed=True,
)
GET_COMPANY = Operation(
    method="GET",
    path="/companies/{company_id}",
    repeatable=True,
    signed=True,
)
CHANGE_COMPANY = Operation(
    method="PATCH",
    path="/companies/{company_id}",
    repeatable=True,
    signed=True,
)
LIST_MEMBERS = Operation(
    method="GET",
    path="/companies/{company_id}/members",
    query=(
        "limit",
        "cursor",
    ),
    repeatable=True,
    signed=True,
)
SET_MEMBER = Operation(
    method="PUT",
    path="/companies/{company_id}/members/{uid}",
    repeatable=True,
    signed=True,
)
REMOVE_MEMBER = Operation(
    method="DELETE",
    path="/companies/{company_id}/members/{uid}",
    repeatable=True,
    signed=True,
)
LIST_ROLES = Operation(
    method="GET",
    path="/companies/{company_id}/roles",
    repeatable=True,
    signed=True,
)
SET_ROLE = Operation(
    method="PUT",
    path="/companies/{company_id}/roles/{role}",
    repeatable=True,
    signed=True,
)
DELETE_ROLE = Operation(
    method="DELETE",
    path="/companies/{company_id}/roles/{role}",
    repeatable=True,
    signed=True,
)
LIST_DOMAINS = Operation(
    method="GET",
    path="/companies/{company_id}/domains",
    repeatable=True,
    signed=True,
)
ADD_DOMAIN = Operation(
    method="POST",
    path="/companies/{company_id}/domains",
    signed=True,
)
REMOVE_DOMAIN = Operation(
    method="DELETE",
    path="/companies/{company_id}/domains/{domain}",
    repeatable=True,
    signed=True,
)
VERIFY_DOMAIN = Operation(
    method="POST",
    path="/companies/{company_id}/domains/{domain}/verify",
    repeatable=True,
    signed=True,
)
LIST_AUDIT = Operation(
    method="GET",
    path="/companies/{company_id}/audit",
    query=(
        "act",
        "uid",
        "start_utc",
        "end_utc",
        "limit",
        "cursor",
    ),
    repeatable=True,
    signed=True,
)
GET_SCIM_TOKEN = Operation(
    method="GET",
    path="/companies/{company_id}/scim-token",
    repeatable=True,
    signed=True,
)
CREATE_SCIM_TOKEN = Operation(
    method="POST",
    path="/companies/{company_id}/scim-token",
    signed=True,
)
DELETE_SCIM_TOKEN = Operation(
    method="DELETE",
    path="/companies/{company_id}/scim-token",
    repeatable=True,
    signed=True,
)
LIST_TEAMS = Operation(
    method="GET",
    path="/companies/{company_id}/teams",
    query=(
        "limit",
        "cursor",
    ),
    repeatable=True,
    signed=True,
)
CREATE_TEAM = Operation(
    method="POST",
    path="/companies/{company_id}/teams",
    signed=True,
)
GET_TEAM = Operation(
    method="GET",
    path="/teams/{team_id}",
    repeatable=True,
    signed=True,
)
RENAME_TEAM = Operation(
    method="PATCH",
    path="/teams/{team_id}",
    repeatable=True,
    signed=True,
)
REMOVE_TEAM = Operation(
    method="DELETE",
    path="/teams/{team_id}",
    repeatable=True,
    signed=True,
)
GET_BUDGET = Operation(
    method="GET",
    path="/teams/{team_id}/budget",
    repeatable=True,
    signed=True,
)
SET_BUDGET = Operation(
    method="PUT",
    path="/teams/{team_id}/budget",
    repeatable=True,
    signed=True,
)
DELETE_BUDGET = Operation(
    method="DELETE",
    path="/teams/{team_id}/budget",
    repeatable=True,
    signed=True,
)
LIST_TEAM_MEMBERS = Operation(
    method="GET",
    path="/teams/{team_id}/members",
    query=(
        "limit",
        "cursor",
    ),
    repeatable=True,
    signed=True,
)
SET_TEAM_MEMBER = Operation(
    method="PUT",
    path="/teams/{team_id}/members/{uid}",
    repeatable=True,
    signed=True,
)
REMOVE_TEAM_MEMBER = Operation(
    method="DELETE",
    path="/teams/{team_id}/members/{uid}",
    repeatable=True,
    signed=True,
)
LIST_TEAM_ROLES = Operation(
    method="GET",
    path="/teams/{team_id}/roles",
    repeatable=True,
    signed=True,
)
SET_TEAM_ROLE = Operation(
    method="PUT",
    path="/teams/{team_id}/roles/{role}",
    repeatable=True,
    signed=True,
)
DELETE_TEAM_ROLE = Operation(
    method="DELETE",
    path="/teams/{team_id}/roles/{role}",
    repeatable=True,
    signed=True,
)
LIST_INVITATIONS = Operation(
    method="GET",
    path="/companies/{company_id}/invitations",
    query=(
        "limit",
        "cursor",
    ),
    repeatable=True,
    signed=True,
)
CREATE_INVITATION = Operation(
    method="POST",
    path="/companies/{company_id}/invitations",
    signed=True,
)
LIST_MY_INVITATIONS = Operation(
    method="GET",
    path="/invitations",
    repeatable=True,
    signed=True,
)
ACCEPT_INVITATION = Operation(
    method="POST",
    path="/invitations/accept",
    signed=True,
)
REVOKE_INVITATION = Operation(
    method="DELETE",
    path="/invitations/{invitation_id}",
    repeatable=True,
    signed=True,
)
ACCEPT_MY_INVITATION = Operation(
    method="POST",
    path="/invitations/{invitation_id}/accept",
    signed=True,
)
LIST_TOOLS = Operation(
    method="GET",
    path="/tools",
    query=(
        "team_id",
        "cursor",
        "limit",
        "tool_tag",
    ),
    selects_team=True,
    repeatable=True,
    signed=True,
)
GET_TOOL = Operation(
    method="GET",
    path="/tools/{tool_id}",
    query=(
        "team_id",
    ),
    selects_team=True,
    repeatable=True,
    signed=True,
)
LIST_TOOL_TAGS = Operation(
    method="GET",
    path="/tool-tags",
    query=(
        "team_id",
    ),
    selects_team=True,
    repeatable=True,
    signed=True,
)
LIST_KITS = Operation(
    method="GET",
    path="/kits",
    query=(
        "team_id",
    ),
    selects_team=True,
    repeatable=True,
    signed=True,
)
CREATE_GENERATION = Operation(
    method="POST",
    path="/generate",
    query=(
        "team_id",
    ),
    headers={"idempotency_key": "Idempotency-Key"},
    selects_team=True,
    repeatable=True,
    has_key=True,
    signed=True,
)
PREVIEW_COST = Operation(
    method="POST",
    path="/generate/preview-cost",
    query=(
        "team_id",
    ),
    selects_team=True,
    repeatable=True,
    signed=True,
)
GET_GENERATION = Operation(
    method="GET",
    path="/generate/{request_id}",
    query=(
        "include",
        "team_id",
    ),
    selects_team=True,
    repeatable=True,
    signed=True,
)
CANCEL_GENERATION = Operation(
    method="POST",
    path="/generate/{request_id}/cancel",
    query=(
        "team_id",
    ),
    selects_team=True,
    repeatable=True,
    signed=True,
)
STREAM_GENERATION = Operation(
    method="GET",
    path="/generate/{request_id}/events",
    query=(
        "team_id",
    ),
    selects_team=True,
    repeatable=True,
    signed=True,
)
LIST_GENERATIONS = Operation(
    method="GET",
    path="/generations",
    query=(
        "status",
        "include",
        "tool_id",
        "team_id",
        "limit",
        "cursor",
    ),
    selects_team=True,
    repeatable=True,
    signed=True,
)
LIST_WEBHOOK_ATTEMPTS = Operation(
    method="GET",
    path="/generate/{request_id}/webhook-attempts",
    query=(
        "team_id",
        "limit",
        "cursor",
    ),
    selects_team=True,
    repeatable=True,
    signed=True,
)
REDELIVER_WEBHOOK = Operation(
    method="POST",
    path="/generate/{request_id}/webhook-attempts/redeliver",
    query=(
        "team_id",
    ),
    selects_team=True,
    signed=True,
)
LIST_WEBHOOK_DELIVERIES = Operation(
    method="GET",
    path="/webhook-deliveries",
    query=(
        "status",
        "team_id",
        "limit",
        "cursor",
    ),
    selects_team=True,
    repeatable=True,
    signed=True,
)
GET_WEBHOOK_SECRET = Operation(
    method="GET",
    path="/webhook-secret",
    query=(
        "team_id",
    ),
    selects_team=True,
    repeatable=True,
    signed=True,
)
ROTATE_WEBHOOK_SECRET = Operation(
    method="POST",
    path="/webhook-secret/rotate",
    query=(
        "team_id",
    ),
    selects_team=True,
    signed=True,
)
CREATE_UPLOAD = Operation(
    method="POST",
    path="/uploads",
    query=(
        "team_id",
        "name",
    ),
    selects_team=True,
    repeatable=True,
    signed=True,
)
LIST_UPLOADS = Operation(
    method="GET",
    path="/uploads",
    query=(
        "type",
        "team_id",
        "limit",
        "cursor",
    ),
    selects_team=True,
    repeatable=True,
    signed=True,
)
GET_UPLOAD = Operation(
    method="GET",
    path="/uploads/{upload_id}",
    query=(
        "team_id",
    ),
    selects_team=True,
    repeatable=True,
    signed=True,
)
DELETE_UPLOAD = Operation(
    method="DELETE",
    path="/uploads/{upload_id}",
    query=(
        "team_id",
    ),
    selects_team=True,
    repeatable=True,
    signed=True,
)
LIST_LIBRARY = Operation(
    method="GET",
    path="/library",
    query=(
        "team_id",
        "q",
        "type",
        "tool_id",
        "flow_request_id",
        "aspect_ratio",
        "resolution",
        "model_family_tool_tag_id",
        "media_tool_tag_id",
        "favorited",
        "start_utc",
        "end_utc",
        "sort",
        "limit",
        "cursor",
    ),
    selects_team=True,
    repeatable=True,
    signed=True,
)
LIST_LIBRARY_MARKS = Operation(
    method="GET",
    path="/library/marks",
    query=(
        "every",
        "team_id",
        "q",
        "type",
        "tool_id",
        "flow_request_id",
        "aspect_ratio",
        "resolution",
        "model_family_tool_tag_id",
        "media_tool_tag_id",
        "favorited",
        "start_utc",
        "end_utc",
        "sort",
    ),
    selects_team=True,
    repeatable=True,
    signed=True,
)
GET_LIBRARY_ITEM = Operation(
    method="GET",
    path="/library/{library_id}",
    query=(
        "team_id",
    ),
    selects_team=True,
    repeatable=True,
    signed=True,
)
DELETE_LIBRARY_ITEM = Operation(
    method="DELETE",
    path="/library/{library_id}",
    query=(
        "team_id",
    ),
    selects_team=True,
    repeatable=True,
    signed=True,
)
RESTORE_LIBRARY_ITEM = Operation(
    method="POST",
    path="/library/{library_id}/restore",
    query=(
        "team_id",
    ),
    selects_team=True,
    repeatable=True,
    signed=True,
)
ADD_FAVORITE = Operation(
    method="PUT",
    path="/library/{library_id}/favorite",
    query=(
        "team_id",
    ),
    selects_team=True,
    repeatable=True,
    signed=True,
)
REMOVE_FAVORITE = Operation(
    method="DELETE",
    path="/library/{library_id}/favorite",
    query=(
        "team_id",
    ),
    selects_team=True,
    repeatable=True,
    signed=True,
)
LIST_FLOWS = Operation(
    method="GET",
    path="/flows",
    query=(
        "team_id",
    ),
    selects_team=True,
    repeatable=True,
    signed=True,
)
CREATE_FLOW = Operation(
    method="POST",
    path="/flows",
    query=(
        "team_id",
    ),
    selects_team=True,
    signed=True,
)
CHECK_FLOW = Operation(
    method="POST",
    path="/flows/check",
    query=(
        "team_id",
    ),
    selects_team=True,
    repeatable=True,
    signed=True,
)
DRAFT_FLOW = Operation(
    method="POST",
    path="/flows/draft",
    query=(
        "team_id",
    ),
    selects_team=True,
    repeatable=True,
    signed=True,
)
GET_FLOW = Operation(
    method="GET",
    path="/flows/{flow_id}",
    query=(
        "team_id",
    ),
    selects_team=True,
    repeatable=True,
    signed=True,
)
CHANGE_FLOW = Operation(
    method="PUT",
    path="/flows/{flow_id}",
    query=(
        "team_id",
    ),
    selects_team=True,
    repeatable=True,
    signed=True,
)
DELETE_FLOW = Operation(
    method="DELETE",
    path="/flows/{flow_id}",
    query=(
        "team_id",
    ),
    selects_team=True,
    repeatable=True,
    signed=True,
)
LIST_FLOW_VERSIONS = Operation(
    method="GET",
    path="/flows/{flow_id}/versions",
    query=(
        "team_id",
    ),
    selects_team=True,
    repeatable=True,
    signed=True,
)
LIST_BOARDS = Operation(
    method="GET",
    path="/boards",
    query=(
        "team_id",
        "deleted",
        "limit",
        "cursor",
    ),
    selects_team=True,
    repeatable=True,
    signed=True,
)
CREATE_BOARD = Operation(
    method="POST",
    path="/boards",
    query=(
        "team_id",
    ),
    selects_team=True,
    signed=True,
)
GET_BOARD = Operation(
    method="GET",
    path="/boards/{board_id}",
    query=(
        "team_id",
        "limit",
        "cursor",
    ),
    selects_team=True,
    repeatable=True,
    signed=True,
)
RENAME_BOARD = Operation(
    method="PATCH",
    path="/boards/{board_id}",
    query=(
        "team_id",
    ),
    headers={"if_match": "If-Match"},
    selects_team=True,
    signed=True,
)
DELETE_BOARD = Operation(
    method="DELETE",
    path="/boards/{board_id}",
    query=(
        "team_id",
    ),
    headers={"if_match": "If-Match"},
    selects_team=True,
    repeatable=True,
    signed=True,
)
RESTORE_BOARD = Operation(
    method="POST",
    path="/boards/{board_id}/restore",
    query=(
        "team_id",
    ),
    selects_team=True,
    repeatable=True,
    signed=True,
)
ADD_NODE = Operation(
    method="POST",
    path="/boards/{board_id}/nodes",
    query=(
        "team_id",
    ),
    headers={"if_match": "If-Match"},
    selects_team=True,
    signed=True,
)
CHANGE_NODES = Operation(
    method="PATCH",
    path="/boards/{board_id}/nodes",
    query=(
        "team_id",
    ),
    headers={"if_match": "If-Match"},
    selects_team=True,
    signed=True,
)
CHANGE_NODE = Operation(
    method="PATCH",
    path="/boards/{board_id}/nodes/{node_id}",
    query=(
        "team_id",
    ),
    headers={"if_match": "If-Match"},
    selects_team=True,
    signed=True,
)
DELETE_NODE = Operation(
    method="DELETE",
    path="/boards/{board_id}/nodes/{node_id}",
    query=(
        "team_id",
    ),
    headers={"if_match": "If-Match"},
    selects_team=True,
    repeatable=True,
    signed=True,
)
STREAM_BOARD = Operation(
    method="GET",
    path="/boards/{board_id}/events",
    query=(
        "team_id",
    ),
    selects_team=True,
    repeatable=True,
    signed=True,
)
SET_PRESENCE = Operation(
    method="PUT",
    path="/boards/{board_id}/presence",
    query=(
        "team_id",
    ),
    selects_team=True,
    repeatable=True,
    signed=True,
)
STREAM_EVENTS = Operation(
    method="GET",
    path="/events",
    query=(
        "team_id",
        "board_id",
        "board_revision",
    ),
    selects_team=True,
    repeatable=True,
    signed=True,
)
REPORT_USAGE = Operation(
    method="GET",
    path="/reports/usage",
    query=(
        "company_id",
        "start_utc",
        "end_utc",
        "group_by",
        "team_id",
        "tool_id",
        "email",
        "format",
        "limit",
        "cursor",
    ),
    repeatable=True,
    signed=True,
)
REPORT_RUNS = Operation(
    method="GET",
    path="/reports/runs",
    query=(
        "company_id",
        "start_utc",
        "end_utc",
        "team_id",
        "tool_id",
        "email",
        "format",
        "limit",
        "cursor",
    ),
    repeatable=True,
    signed=True,
)
GET_OPERATOR_STATUS = Operation(
    method="GET",
    path="/operator/status",
    repeatable=True,
    signed=True,
)
LIST_OPERATOR_RUNS = Operation(
    method="GET",
    path="/operator/runs",
    query=(
        "status",
        "limit",
        "cursor",
    ),
    repeatable=True,
    signed=True,
)
CANCEL_OPERATOR_RUN = Operation(
    method="POST",
    path="/operator/runs/{request_id}/cancel",
    repeatable=True,
    signed=True,
)
LIST_OPERATOR_PEOPLE = Operation(
    method="GET",
    path="/operator/people",
    query=(
        "q",
        "limit",
        "cursor",
    ),
    repeatable=True,
    signed=True,
)
LIST_OPERATOR_COMPANIES = Operation(
    method="GET",
    path="/operator/companies",
    query=(
        "q",
        "limit",
        "cursor",
    ),
    repeatable=True,
    signed=True,
)
CREATE_OPERATOR_GRANT = Operation(
    method="POST",
    path="/operator/grants",
    headers={"idempotency_key": "Idempotency-Key"},
    repeatable=True,
    has_key=True,
    signed=True,
)
LIST_OPERATOR_SETTINGS = Operation(
    method="GET",
    path="/operator/settings",
    repeatable=True,
    signed=True,
)
GET_OPEN_API = Operation(
    method="GET",
    path="/openapi.json",
    repeatable=True,
)
