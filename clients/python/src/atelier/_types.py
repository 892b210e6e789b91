# Generated from api/openapi.yaml by build/clients. Do not edit.
"""The records of the interface, as dictionaries with known keys."""

from __future__ import annotations

from typing import Any, Dict, List, Literal, Optional, TypedDict, Union

__all__ = [
    "AccessToken",
    "AccessTokenDraft",
    "AccessTokenList",
    "Account",
    "AccountDeletion",
    "AspectRatio",
    "AuditList",
    "AuditRecord",
    "Balance",
    "Board",
    "BoardChange",
    "BoardDraft",
    "BoardList",
    "BoardPoint",
    "BoardPresence",
    "BoardSummary",
    "BoardViewer",
    "Budget",
    "BudgetAlert",
    "BudgetDraft",
    "BudgetEvent",
    "Company",
    "CompanyAccessTokenDraft",
    "CompanyChange",
    "CompanyList",
    "CompanyPermission",
    "CompanyPermissions",
    "CompanyRole",
    "CompanyRoleDraft",
    "CompanyRoleList",
    "CostPreview",
    "CreateGenerationRequest",
    "CredentialKind",
    "Device",
    "DeviceCodes",
    "DeviceList",
    "DevicePoll",
    "DeviceStart",
    "Domain",
    "DomainDraft",
    "DomainList",
    "Error",
    "ErrorBody",
    "ErrorCode",
    "EventReconnect",
    "EventReset",
    "FieldDisplay",
    "FieldGroup",
    "FieldLeaf",
    "FieldNode",
    "FieldType",
    "FileInput",
    "Flow",
    "FlowChange",
    "FlowCheck",
    "FlowDraft",
    "FlowField",
    "FlowList",
    "FlowOrigin",
    "FlowPrice",
    "FlowProblem",
    "FlowShare",
    "FlowStep",
    "FlowSummary",
    "FlowVersion",
    "FlowVersionList",
    "Generation",
    "GenerationCreated",
    "GenerationError",
    "GenerationErrorCode",
    "GenerationInclude",
    "GenerationList",
    "GenerationOutput",
    "GenerationPreview",
    "GenerationProgress",
    "GenerationStage",
    "GenerationStatus",
    "GenerationStep",
    "GenerationWebhook",
    "Identity",
    "InputValue",
    "Inputs",
    "Invitation",
    "InvitationDraft",
    "InvitationList",
    "InvitationToken",
    "JoinedTeam",
    "Kit",
    "KitLabel",
    "KitList",
    "KitTool",
    "LedgerDay",
    "LedgerEntry",
    "LedgerGroup",
    "LedgerList",
    "LibraryItem",
    "LibraryItemDetail",
    "LibraryItemFlow",
    "LibraryList",
    "LibraryMark",
    "LibraryMarks",
    "LibraryRef",
    "LibrarySort",
    "ListInput",
    "ListItemInput",
    "Medium",
    "Member",
    "MemberList",
    "Metadata",
    "MultipartFile",
    "Node",
    "NodeChange",
    "NodeChanges",
    "NodeChangesResult",
    "NodeDraft",
    "NodeItem",
    "NodeKind",
    "NodeUpdate",
    "NumResults",
    "OpenAPIDocument",
    "OperatorAccount",
    "OperatorAccountKind",
    "OperatorCompany",
    "OperatorCompanyList",
    "OperatorCompanyPlan",
    "OperatorDatabase",
    "OperatorEngine",
    "OperatorEngineError",
    "OperatorFileStore",
    "OperatorGrant",
    "OperatorGrantRequest",
    "OperatorHealth",
    "OperatorNode",
    "OperatorNodeEngine",
    "OperatorPerson",
    "OperatorPersonList",
    "OperatorRun",
    "OperatorRunFilter",
    "OperatorRunList",
    "OperatorRunStatus",
    "OperatorSetting",
    "OperatorSettingList",
    "OperatorSettingSource",
    "OperatorStatus",
    "OperatorStorage",
    "OperatorTeam",
    "OperatorTool",
    "Option",
    "OptionList",
    "OptionValue",
    "Permissions",
    "PresenceDraft",
    "PricingType",
    "ReceivedInvitation",
    "ReceivedInvitationList",
    "RefreshRequest",
    "ReportFormat",
    "Resolution",
    "RoleAssignment",
    "RunPreview",
    "RunReport",
    "RunRow",
    "ScimToken",
    "SignInResult",
    "Size",
    "SizeInput",
    "SizeList",
    "SpendLimit",
    "Storage",
    "StorageReport",
    "Team",
    "TeamDraft",
    "TeamList",
    "TeamMember",
    "TeamMemberList",
    "TeamRole",
    "TeamRoleDraft",
    "TeamRoleList",
    "TeamStorage",
    "Tokens",
    "Tool",
    "ToolDetail",
    "ToolLimits",
    "ToolList",
    "ToolOutput",
    "ToolTag",
    "ToolTagList",
    "TopUp",
    "TopUpResult",
    "TusProtocol",
    "Upload",
    "UploadList",
    "UploadRef",
    "UsageCount",
    "UsageReport",
    "UsageRow",
    "User",
    "WebToken",
    "WebhookAttempt",
    "WebhookAttemptList",
    "WebhookDelivery",
    "WebhookDeliveryList",
    "WebhookEvent",
    "WebhookSecret",
    "WebhookState",
]

TusProtocol = Literal["1.0.0"]
"""A version of the tus protocol."""
AspectRatio = Literal["1:1", "16:9", "2:1", "3:2", "4:3", "21:9", "9:16", "2:3", "3:4", "OTHER"]
"""The aspect ratio of a picture or video, rounded to the nearest of these; `OTHER` is near none."""
Resolution = Literal["1K", "2K", "4K+"]
"""The resolution of a picture or video, by its longer edge."""
ReportFormat = Literal["json", "csv"]
"""The format of a report."""
OpenAPIDocument = Dict[str, Any]
"""An OpenAPI document."""
Permissions = Dict[str, bool]
"""Every permission, and whether the person or role has it."""
CompanyPermissions = Dict[str, "Permissions"]
"""By company id, every permission and whether the person has it."""
LedgerGroup = Literal["day"]
"""The way in which entries are summed."""
OperatorDatabase = Literal["sqlite", "postgres"]
"""The kind of database."""
OperatorFileStore = Literal["folder", "s3"]
"""Where files are stored: in a folder of the node, or in an S3 bucket."""
OperatorHealth = Literal["available", "unavailable", "unserved"]
"""The health of an engine: `available`; `unavailable` (the circuit breaker is open: no node reaches
the engine's server, and its runs wait); `unserved` (no running node has the engine).
"""
OperatorRunFilter = Literal["waiting", "running"]
"""The status of a run that has not ended."""
OperatorRunStatus = Literal["waiting", "running", "succeeded", "failed", "cancelled"]
"""The status of a run."""
OperatorAccountKind = Literal["PERSONAL", "TEAM"]
"""The kind of account."""
OperatorCompanyPlan = Literal["TEAM", "ENTERPRISE"]
"""The plan of a company."""
OperatorSettingSource = Literal["default", "file", "environment", "flag"]
"""Where the value of a setting comes from."""
CompanyPermission = Literal[
    "MANAGE_API_TOKENS",
    "VIEW_COMPANY_REPORTS",
    "MANAGE_MEMBERS",
    "MANAGE_TEAMS",
    "MANAGE_BILLING",
]
"""A permission in a company: creating access tokens that act for members, reading reports, managing
members (with roles, invitations and domains), managing teams, managing billing.
"""
PricingType = Literal["COST", "FREE"]
"""Whether runs are deducted from the account's balance."""
FieldNode = Union["FieldGroup", "FieldLeaf"]
"""A group or a field of a tool's form; `isField` tells them apart."""
FieldType = Literal[
    "PROMPT",
    "NEG_PROMPT",
    "TEXT",
    "TEXT_AREA",
    "SLIDER",
    "UPSCALE_FACTOR_SLIDER",
    "CFG",
    "STEPS",
    "NUM",
    "SEED",
    "BOOLEAN",
    "SINGLE_SELECT",
    "MODEL_SINGLE_SELECT",
    "MULTI_SELECT",
    "WIDTH_HEIGHT",
    "IMG",
    "IMGS",
    "VIDEO",
    "AUDIO",
    "ASSET_3D",
    "HEADER",
    "HTML",
]
"""The type of the field's value. `HEADER` and `HTML` have no value."""
OptionValue = Union[str, float]
"""The value for a run's `inputs`. A number may also be sent as text."""
Inputs = Dict[str, "InputValue"]
"""The values of a tool's fields, by `fieldKey`."""
InputValue = Optional[Union[str, float, bool, "SizeInput", "FileInput", "ListInput"]]
"""The value of a field: a text, a number, a boolean, a size, a file, or a list of texts, numbers or
files.
"""
ListInput = List["ListItemInput"]
"""Several values."""
ListItemInput = Union[str, float, "FileInput"]
"""One of several values."""
Metadata = Dict[str, Any]
"""Any data of the client."""
FileInput = Union["MultipartFile", "UploadRef", "LibraryRef"]
"""The file of an input; `kind` tells the variants apart."""
GenerationStatus = Literal["pending", "succeeded", "failed", "cancelled"]
"""The status of a run. All but `pending` are final."""
GenerationStage = Literal["queued", "running"]
"""The stage of a pending run. A run that waits in the queue of its model server is queued. A
running run returns to the queue if its worker is lost.
"""
GenerationInclude = Literal["inputs"]
"""A part of a run that responses contain only on request."""
Medium = Literal["IMG", "VID", "AUDIO", "ASSET_3D", "TEXT"]
"""The kind of media."""
GenerationErrorCode = Literal[
    "ENGINE_FAILED",
    "ENGINE_UNAVAILABLE",
    "TIMED_OUT",
    "CONTENT_POLICY_VIOLATION",
    "OUTPUT_INVALID",
    "STORAGE_QUOTA_EXCEEDED",
]
"""The code for programs. `ENGINE_FAILED`: the engine failed with these inputs, so change them.
`ENGINE_UNAVAILABLE`: no engine was available; try again later. `TIMED_OUT`: the run took longer
than the tool allows; try again later, or ask for less. `CONTENT_POLICY_VIOLATION`: the result is
not allowed; do not retry it unchanged. `OUTPUT_INVALID`: the output of the engine cannot be
used; try again, and report it to the operator if it persists. `STORAGE_QUOTA_EXCEEDED`: the
results did not fit into the account's storage; delete files first. New codes may be added.
"""
WebhookState = Literal["pending", "delivered", "failing", "exhausted", "gone"]
"""`pending`: not sent yet. `delivered`: your server accepted it. `failing`: your server did not
accept it, and the service retries. `exhausted`: your server never accepted it, and the service
has stopped. `gone`: your server answered 410.
"""
LibrarySort = Literal["newest", "oldest"]
"""`newest`: the newest first. `oldest`: the oldest first."""
FlowField = Dict[str, Any]
"""A field of a form, as in a manifest, such as `{"key", "type", "label", "required", "default"}`.
"""
FlowStep = Dict[str, Any]
"""A step, as in a manifest: `id`, `tool` (a slug), and `inputs` from `{"field"}`, `{"step",
"result"}`, `{"value"}`, `{"item": true}`, `{"first_of"}` or `{"all_of"}`; and `num_results`,
`for_each` with `max`, `when`, `otherwise` and `drop`.
"""
NodeKind = Literal["LIBRARY_REF", "UPLOAD_REF", "TEXT", "GENERATION"]
"""The content of a node: a result, an upload, a text, or a run."""
CredentialKind = Literal["id_token", "personal_token", "company_token"]
"""The kind of credential that started the runs."""
ErrorCode = Literal[
    "UNAUTHENTICATED",
    "TOKEN_INVALID",
    "AUTHORIZATION_PENDING",
    "SLOW_DOWN",
    "DEVICE_CODE_EXPIRED",
    "UPSTREAM_UNAVAILABLE",
    "RATE_LIMITED",
    "ACTIVE_RUN_CAP",
    "PLUGIN_NOT_ALLOWED",
    "FORBIDDEN",
    "EMAIL_NOT_VERIFIED",
    "ACCOUNT_SELECTION_INVALID",
    "INVALID_REQUEST",
    "NOT_FOUND",
    "TOOL_SCHEMA_STALE",
    "IDEMPOTENCY_KEY_CONFLICT",
    "CONFLICT",
    "INSUFFICIENT_BALANCE",
    "NUM_RESULTS_LIMIT",
    "CONTENT_POLICY_VIOLATION",
    "TOO_MANY_INPUT_FILES",
    "UPLOAD_TOO_LARGE",
    "UPLOAD_OFFSET_CONFLICT",
    "UPLOAD_CHECKSUM_MISMATCH",
    "PAYLOAD_TOO_LARGE",
    "STORAGE_QUOTA_EXCEEDED",
    "UNSUPPORTED_MEDIA_TYPE",
    "METHOD_NOT_ALLOWED",
    "REQUEST_TIMEOUT",
    "INTERNAL",
]
"""The code for programs. New codes may be added; existing ones are never renamed."""


class DeviceStart(TypedDict, total=False):
    """The start of a device's sign-in; may be empty."""

    plugin_kind: Optional[str]
    """The kind of app, shown to the person who approves the sign-in."""


class DeviceCodes(TypedDict):
    """The codes of a device's sign-in."""

    device_code: str
    """Secret; for polling only."""
    user_code: str
    """The code that the person compares."""
    verification_url: str
    """The page where the person approves the sign-in."""
    expires_in: int
    """Seconds until both codes expire."""
    interval: int
    """The minimal number of seconds between polls."""


class DevicePoll(TypedDict):
    """The device that polls."""

    device_code: str
    """The `device_code` that the start returned."""


class RefreshRequest(TypedDict):
    """The refresh token to exchange."""

    refresh_token: str
    """The newest refresh token that you received."""


class Tokens(TypedDict):
    """The tokens of a device."""

    id_token: str
    """The ID token, valid for about an hour; a JWT whose keys are at `/.well-known/jwks.json`."""
    refresh_token: str
    """The refresh token, only for new ID tokens. Keep it secret."""
    expires_at: int
    """When the ID token expires, in Unix seconds."""


class WebToken(TypedDict):
    """A short-lived ID token of a browser session."""

    id_token: str
    """The ID token. Keep it in memory only."""
    expires_at: int
    """When the token expires, in Unix seconds."""
    expires_in: int
    """Seconds until the token expires."""
    uid: str


class SignInResult(TypedDict):
    """The tokens and the person after a sign-in."""

    tokens: Tokens
    device_id: str
    user: User
    accounts: List[Account]
    newly_joined_teams: List[JoinedTeam]


class Identity(TypedDict):
    """A person, and the accounts that they can act for."""

    user: User
    accounts: List[Account]
    """The personal account first, then the teams."""
    newly_joined_teams: List[JoinedTeam]
    """Teams joined, by invitation or mail domain, since the sign-in before the newest one."""
    company_permissions: CompanyPermissions
    operator: bool
    """Whether this credential may use the routes under `/operator`."""


class User(TypedDict):
    """A person."""

    uid: str
    email: str
    """E-mail address."""
    email_verified: bool
    """Whether the person has verified it."""
    sign_in_provider: str
    """`password`, or the name of an OpenID provider."""
    created: str
    """The time when the person signed up."""
    created_at: str
    """The same as `created`."""
    top_up: TopUp


class TopUp(TypedDict):
    """The free tokens that the person can claim."""

    available: bool
    """Whether the tokens can be claimed now."""
    tokens: int
    """The number of free tokens."""


class TopUpResult(TypedDict):
    """The personal account after a top-up."""

    top_up: TopUp
    balance: Balance


class Account(TypedDict):
    """An account that the person can act for."""

    id: str
    """The team's id, which `team_id` accepts; for the personal account the person's id, which
    `team_id` does not accept.
    """
    label: str
    """Display name."""
    kind: Literal["PERSONAL", "TEAM"]
    """The kind of account."""
    company_id: Optional[str]
    """The team's company; null for the personal account."""
    permissions: Permissions
    """The permissions of the person in the account; `USE_PLUGINS` is "Allow plugin and API access".
    """
    plugin_kinds: List[str]
    """The kinds of apps that may act for the account; `*` alone means all kinds."""
    plan: Literal["PERSONAL", "TEAM", "ENTERPRISE"]
    """The plan of the account."""
    balance: Balance
    storage: Storage


class Storage(TypedDict):
    """The storage of an account: its uploads, results and files sent with runs, with their
    thumbnails. Deleted files do not count, although their bytes are removed an hour later; until
    then they may occupy up to the limit once more.
    """

    used_bytes: int
    """The bytes stored."""
    limit_bytes: Optional[int]
    """The limit of stored bytes; null for none."""


class Balance(TypedDict):
    """Tokens of an account."""

    tokens: int
    """The tokens that can be spent."""
    held: int
    """The tokens held by active runs."""
    free_allowance_left: int
    """Free tokens left this month."""


class JoinedTeam(TypedDict):
    """A team that the person joined."""

    id: str
    label: str
    """Display name."""
    company_id: str


class AccessTokenDraft(TypedDict):
    """The data of a new personal access token."""

    name: str
    """The purpose."""


class CompanyAccessTokenDraft(TypedDict):
    """The data of a new company access token."""

    name: str
    """The purpose."""
    uid: str


class _AccessTokenRequired(TypedDict):
    id: str
    name: str
    """The purpose."""
    hint: str
    """Its last four characters."""
    created: str
    """The time of creation."""
    last_used: Optional[str]
    """The time of the last use, to the minute; null before the first use."""
    company_id: Optional[str]
    """The company of the token; null for a personal access token."""
    uid: str


class AccessToken(_AccessTokenRequired, total=False):
    """An access token."""

    token: str
    """The value; only in the response that created it."""


class Device(TypedDict):
    """A device on which the person is signed in."""

    id: str
    kind: str
    """The kind of entry. `DEVICE` is an app that signed in with the device flow, `BROWSER` a
    browser; other kinds may be added.
    """
    name: str
    """The user agent of the app or browser at the sign-in."""
    plugin_kind: Optional[str]
    """The kind of app that the device reported; null for none."""
    address: str
    """The network address of the last use."""
    sign_in_provider: str
    """The way in which the person who approved it had signed in."""
    created: str
    """The time of the sign-in."""
    last_used: str
    """The time of the last use, up to a minute late."""
    current: bool
    """Whether the request comes from this device."""


class DeviceList(TypedDict):
    """A page of devices."""

    data: List[Device]
    has_more: bool
    next_cursor: Optional[str]
    """The cursor of the next page; null on the last page."""


class LedgerEntry(TypedDict):
    """Tokens that an account received or spent."""

    id: str
    kind: str
    tokens: int
    """The number of tokens; negative if the account spent them."""
    note: Optional[str]
    """The operator's note on a grant; null for none."""
    request_id: Optional[str]
    """The run that was charged; null for other entries."""
    tool_id: Optional[str]
    """The tool of the run; null for other entries."""
    tool_name: Optional[str]
    """The current name of the tool; null for other entries and for tools that are gone."""
    uid: Optional[str]
    """The person who started the run; null for other entries."""
    created: str
    """The time of the entry."""


class LedgerDay(TypedDict):
    """The entries of one day in UTC."""

    day: str
    """The day in UTC."""
    received: int
    """The tokens that the account received."""
    spent: int
    """The tokens that the account spent."""
    balance: int
    """The tokens of the account at the end of the day, including those held for runs."""
    entries: int
    """The number of entries."""


class LedgerList(TypedDict):
    """A page of entries, or sums by day."""

    data: List[LedgerEntry]
    """The entries; empty with `group_by`."""
    days: List[LedgerDay]
    """The sums by day; empty without `group_by`."""
    has_more: bool
    next_cursor: Optional[str]
    """The cursor of the next page; null on the last page."""


class OperatorStorage(TypedDict):
    """The stored files of all accounts together."""

    kind: OperatorFileStore
    used_bytes: int
    """The stored bytes."""
    limit_bytes: Optional[int]
    """The most bytes that may be stored; null for no limit."""
    state: str
    """The state of the disks of the node that answers, as `/readyz` shows it."""


class OperatorEngineError(TypedDict):
    """The newest failure of an engine."""

    code: str
    """The error code of a run, or `ENGINE_UNAVAILABLE` for a server that could not be reached."""
    message: Optional[str]
    """Why the server could not be reached; null for a failed run, whose message may quote its
    prompt.
    """
    node_id: str
    created: str
    """The time of the failure."""


class OperatorTool(TypedDict):
    """A tool that runs on an engine."""

    id: str
    name: str
    """The name of the tool."""


class OperatorEngine(TypedDict):
    """An engine, on all nodes together."""

    name: str
    """The name of the engine in manifests and in the file of backends."""
    health: OperatorHealth
    unavailable_since: Optional[str]
    """The time since when no node reaches the server; null while it is available."""
    last_error: Optional[OperatorEngineError]
    """The newest failure on a running node; null for none."""
    nodes: int
    """The running nodes that have the engine."""
    capacity: int
    """The runs that these nodes may execute at the same time."""
    running: int
    """The runs that are running. At most 20000 are counted."""
    waiting: int
    """The runs that wait."""
    oldest_wait_seconds: Optional[int]
    """How long the oldest run has waited; null if none waits."""
    median_wait_seconds: Optional[int]
    """The median waiting time so far, of at most 1,000 waiting runs; null if none waits."""
    tools: List[OperatorTool]
    """The tools that run on the engine, by name."""


class OperatorNodeEngine(TypedDict):
    """An engine of one node."""

    name: str
    """The name of the engine."""
    available: bool
    """Whether the node reaches the engine's server."""
    capacity: int
    """The runs that the node may execute at the same time."""
    running: int
    """The runs that the node executes."""


class OperatorNode(TypedDict):
    """A process of the installation. Nodes that stopped reporting are listed for an hour."""

    id: str
    version: str
    """The version of the program."""
    roles: List[str]
    """What the node does: `api`, `worker` or both."""
    live: bool
    """Whether the node has reported within the last 30 seconds."""
    started: str
    """The start of the process."""
    last_seen: str
    """The newest report of the node."""
    engines: List[OperatorNodeEngine]
    """The engines of the node, by name; empty for nodes that execute no runs."""


class OperatorStatus(TypedDict):
    """The state of the installation."""

    version: str
    """The version of the node that answers."""
    started: str
    """The start of the node that answers."""
    uptime_seconds: int
    """How long the node that answers has been running."""
    database: OperatorDatabase
    storage: OperatorStorage
    running: int
    """The running runs of all engines."""
    waiting: int
    """The waiting runs of all engines."""
    engines: List[OperatorEngine]
    """The engines, by name."""
    nodes: List[OperatorNode]
    """The nodes, the newest first."""
    created: str
    """The time of this response."""


class OperatorAccount(TypedDict):
    """The account of a person or a team."""

    id: str
    kind: OperatorAccountKind
    name: str
    """The e-mail address of the person, or the name of the team; empty if the person was deleted.
    """
    company_id: Optional[str]
    """The team's company; null for a person."""
    company_name: Optional[str]
    """The name of the team's company; null for a person."""


class OperatorRun(TypedDict):
    """A run, without what the person made."""

    request_id: str
    status: OperatorRunStatus
    cancel_requested: bool
    """Whether somebody has cancelled the run."""
    tool_id: str
    tool_name: Optional[str]
    """The current name of the tool; null if the tool is unknown."""
    engine: str
    """The engine of the tool."""
    account: OperatorAccount
    uid: str
    email: str
    """The e-mail address of the person who started the run; empty if they were deleted."""
    node_id: Optional[str]
    """The node that executes the run; null if none does."""
    attempts: int
    """How often a node has begun the run."""
    progress: Optional[float]
    """The progress from 0 to 1; null if it is unknown."""
    server_queue_position: Optional[int]
    """The position in the queue of the model server, 0 if it is unknown; null if the run is not in
    that queue.
    """
    tokens_held: int
    """The tokens that the run holds."""
    created: str
    """The time of the create request."""
    started: Optional[str]
    """The time when a node first began the run; null before."""


class OperatorRunList(TypedDict):
    """A page of runs of all accounts."""

    data: List[OperatorRun]
    """The runs."""
    has_more: bool
    next_cursor: Optional[str]
    """The cursor of the next page; null on the last page."""


class OperatorPerson(TypedDict):
    """A person, for the operator."""

    uid: str
    email: str
    """The e-mail address."""
    email_verified: bool
    """Whether the e-mail address is verified."""
    suspended: bool
    """Whether the person is suspended."""
    operator: bool
    """Whether the setting `operators` names the e-mail address."""
    created: str
    """The time when the account was created."""
    last_seen: Optional[str]
    """The newest use of a browser, device or access token; null for none."""
    balance: Balance
    runs: int
    """The runs that the person has started, for any account. At most 1,000 are counted."""


class OperatorPersonList(TypedDict):
    """A page of people."""

    data: List[OperatorPerson]
    """The people."""
    has_more: bool
    next_cursor: Optional[str]
    """The cursor of the next page; null on the last page."""


class OperatorTeam(TypedDict):
    """A team, for the operator."""

    id: str
    name: str
    """The name of the team."""
    balance: Balance


class OperatorCompany(TypedDict):
    """A company, for the operator."""

    id: str
    name: str
    """The name of the company."""
    plan: OperatorCompanyPlan
    time_zone: str
    """The time zone of the company's days and months."""
    created: str
    """The time when the company was created."""
    members: int
    """The number of members."""
    team_count: int
    """The number of teams."""
    teams: List[OperatorTeam]
    """The teams by name, at most 100."""
    runs: int
    """The runs of the company's teams that have ended. At most 1,000 are counted."""
    last_run: Optional[str]
    """The time when the newest of these runs ended; null for none."""


class OperatorCompanyList(TypedDict):
    """A page of companies."""

    data: List[OperatorCompany]
    """The companies."""
    has_more: bool
    next_cursor: Optional[str]
    """The cursor of the next page; null on the last page."""


class OperatorGrantRequest(TypedDict):
    """Tokens for an account."""

    account_id: str
    """The id of a person or of a team."""
    tokens: int
    """The number of tokens; negative to take tokens back."""
    reason: str
    """The reason, which the account's history and the audit log show."""


class OperatorGrant(TypedDict):
    """Tokens that an operator granted."""

    id: str
    account: OperatorAccount
    tokens: int
    """The number of tokens; negative if they were taken back."""
    reason: str
    """The reason."""
    balance: int
    """The tokens that the account could spend after the grant."""
    created: str
    """The time of the grant."""


class OperatorSetting(TypedDict):
    """A setting in force."""

    name: str
    """The name in the settings file."""
    value: Optional[str]
    """The value as the settings file would have it, passwords in URLs replaced by asterisks; null
    for secrets.
    """
    secret: bool
    """Whether the value is a secret."""
    is_set: bool
    """Whether the setting has a value."""
    source: OperatorSettingSource
    description: str
    """The meaning of the setting."""


class OperatorSettingList(TypedDict):
    """The settings in force."""

    data: List[OperatorSetting]
    """The settings."""


class AccessTokenList(TypedDict):
    """A page of access tokens."""

    data: List[AccessToken]
    has_more: bool
    next_cursor: Optional[str]
    """The cursor of the next page; null on the last page."""


class RoleAssignment(TypedDict):
    """The role to assign."""

    role: str


class Company(TypedDict):
    """A company, and the membership of the caller."""

    id: str
    name: str
    """Display name."""
    plan: Literal["TEAM", "ENTERPRISE"]
    """The plan of the company."""
    time_zone: str
    created: str
    """The time of creation."""
    role: str
    permissions: List[CompanyPermission]
    """The permissions of that role."""
    joined: str
    """The time when the person joined."""


class CompanyList(TypedDict):
    """The companies of a person."""

    data: List[Company]
    has_more: bool
    next_cursor: Optional[str]
    """Always null: the list has one page."""


class CompanyChange(TypedDict, total=False):
    """The changes to a company."""

    name: Optional[str]
    """Display name, without leading and trailing spaces."""
    time_zone: Optional[str]


class CompanyRole(TypedDict):
    """A role of a company."""

    name: str
    permissions: List[CompanyPermission]
    """The permissions of the role."""


class CompanyRoleList(TypedDict):
    """The roles of a company."""

    data: List[CompanyRole]
    has_more: bool
    next_cursor: Optional[str]
    """Always null: the list has one page."""


class CompanyRoleDraft(TypedDict):
    """The data of a role."""

    permissions: List[CompanyPermission]
    """All permissions of the role; may be empty."""


class Member(TypedDict):
    """A member of a company."""

    uid: str
    email: str
    """E-mail address."""
    role: str
    joined: str
    """The time when the person joined."""


class MemberList(TypedDict):
    """A page of members."""

    data: List[Member]
    has_more: bool
    next_cursor: Optional[str]
    """The cursor of the next page; null on the last page."""


class Domain(TypedDict):
    """A mail domain. Once it is verified, people with an address in it join automatically."""

    domain: str
    """The domain."""
    record: str
    """The name of the TXT record that proves the ownership."""
    proof: str
    """The content of the TXT record."""
    verified: Optional[str]
    """The time of the verification; null before."""
    team_id: Optional[str]
    """The team that these people join; null for the company only."""
    team_role: Optional[str]
    """The role in that team."""
    created: str
    """The time when it was added."""


class DomainList(TypedDict):
    """The mail domains of a company."""

    data: List[Domain]
    has_more: bool
    next_cursor: Optional[str]
    """Always null: the list has one page."""


class _DomainDraftRequired(TypedDict):
    domain: str


class DomainDraft(_DomainDraftRequired, total=False):
    """A mail domain to add."""

    team_id: Optional[str]
    """The team that these people join; absent or empty for the company only."""
    team_role: Optional[str]
    """The role in that team; `member` if absent or empty."""


class AuditRecord(TypedDict):
    """An entry of the audit log."""

    seq: int
    """The number of the entry in the log of the installation."""
    at: str
    """The time of the act."""
    act: str
    """The act."""
    actor_id: Optional[str]
    """The person who acted; null for the operator and for automatic acts."""
    person_id: Optional[str]
    """The person it is about; null for none."""
    address: Optional[str]
    """The network address of the request; null for none."""
    details: Dict[str, str]
    """Details, which depend on the act."""


class AuditList(TypedDict):
    """A page of the audit log."""

    data: List[AuditRecord]
    has_more: bool
    next_cursor: Optional[str]
    """The cursor of the next page; null on the last page."""


class Team(TypedDict):
    """A team of a company."""

    id: str
    company_id: str
    name: str
    """Display name."""
    created: str
    """The time of creation."""


class TeamList(TypedDict):
    """A page of teams."""

    data: List[Team]
    has_more: bool
    next_cursor: Optional[str]
    """The cursor of the next page; null on the last page."""


class TeamDraft(TypedDict):
    """The data of a team."""

    name: str
    """Display name, without leading and trailing spaces."""


class TeamMember(TypedDict):
    """A member of a team."""

    uid: str
    email: str
    """E-mail address."""
    role: str
    joined: str
    """The time when the person joined."""
    how: Literal["added", "invitation", "domain"]
    """The way in which the person joined."""


class TeamMemberList(TypedDict):
    """A page of members of a team."""

    data: List[TeamMember]
    has_more: bool
    next_cursor: Optional[str]
    """The cursor of the next page; null on the last page."""


class TeamRole(TypedDict):
    """A role of a team: its permissions, tools and limits."""

    name: str
    permissions: Permissions
    """Every permission, and whether the role has it; `USE_PLUGINS` is "Allow plugin and API
    access".
    """
    tools_allowed: List[str]
    """The ids of the allowed tools; empty for all tools."""
    tools_blocked: List[str]
    """The ids of forbidden tools, even if they are allowed otherwise."""
    plugin_kinds: List[str]
    """The kinds of apps that may act; `*` alone means all kinds."""
    spend: Optional[SpendLimit]
    """The spending limit; null for none."""


class TeamRoleList(TypedDict):
    """The roles of a team."""

    data: List[TeamRole]
    has_more: bool
    next_cursor: Optional[str]
    """Always null: the list has one page."""


class _TeamRoleDraftRequired(TypedDict):
    permissions: Dict[str, bool]
    """The permissions of the role; absent permissions are not granted. The names are `USE_PLUGINS`,
    `GENERATE` and `MANAGE_TEAM`.
    """


class TeamRoleDraft(_TeamRoleDraftRequired, total=False):
    """The data of a role of a team. It replaces the whole role."""

    tools_allowed: Optional[List[str]]
    """The ids of the allowed tools; empty or absent for all tools."""
    tools_blocked: Optional[List[str]]
    """The ids of forbidden tools, even if they are allowed otherwise."""
    plugin_kinds: Optional[List[str]]
    """The kinds of apps that may act; `*` alone, or absent, means all kinds."""
    spend: Optional[SpendLimit]
    """The spending limit; null or absent for none."""


class SpendLimit(TypedDict):
    """A limit of tokens in any window of time."""

    tokens: int
    """The number of tokens."""
    window_seconds: int
    """The length of the window."""


class _InvitationRequired(TypedDict):
    id: str
    company_id: str
    company_role: str
    team_id: Optional[str]
    """The team to join; null for the company only."""
    team_role: Optional[str]
    """The role in that team."""
    email: Optional[str]
    """The e-mail address of the invited person; null if anyone with the link may use it."""
    uses_left: int
    """The number of people who can still accept it."""
    invited_by: Optional[str]
    """The person who created it; null for the operator."""
    created: str
    """The time of creation."""
    expires: str
    """The time when it expires."""


class Invitation(_InvitationRequired, total=False):
    """An invitation to a company, and to a team if it names one."""

    url: str
    """The link; only in the response that created it, and only without `email`."""


class InvitationList(TypedDict):
    """A page of invitations."""

    data: List[Invitation]
    has_more: bool
    next_cursor: Optional[str]
    """The cursor of the next page; null on the last page."""


class InvitationDraft(TypedDict, total=False):
    """The data of a new invitation."""

    email: Optional[str]
    """The e-mail address of the invited person; if absent, anyone with the link may use it."""
    company_role: Optional[str]
    """The role in the company; `member` if absent or empty."""
    team_id: Optional[str]
    """The team to join; absent or empty for the company only."""
    team_role: Optional[str]
    """The role in that team; `member` if absent or empty."""
    uses: Optional[int]
    """The number of people who can accept it; 1 by default, and always 1 with `email`."""
    lifetime_seconds: Optional[int]
    """The lifetime; 604,800 (a week) by default."""


class ReceivedInvitation(TypedDict):
    """An invitation as the invited person sees it."""

    id: str
    company_id: str
    company_name: str
    """The company's display name."""
    team_id: Optional[str]
    """The team to join; null for the company only."""
    team_name: Optional[str]
    """The team's display name."""
    created: str
    """The time of creation."""
    expires: str
    """The time when it expires."""


class ReceivedInvitationList(TypedDict):
    """The invitations of a person."""

    data: List[ReceivedInvitation]
    has_more: bool
    next_cursor: Optional[str]
    """Always null: the list has one page."""


class InvitationToken(TypedDict):
    """The token of an invitation link."""

    token: str
    """The `token` of the link."""


class ToolList(TypedDict):
    """A page of tools."""

    data: List[Tool]
    has_more: bool
    next_cursor: Optional[str]
    """The cursor of the next page; null on the last page."""


class Tool(TypedDict):
    """A tool in a list."""

    id: str
    slug: str
    """The name of the tool in commands and manifests. It stays the same when the display name
    changes.
    """
    name: str
    """Display name; may contain emoji."""
    description: Optional[str]
    """One-line summary."""
    avatar_url: Optional[str]
    """URL of a PNG that needs no credential; null for none."""
    average_gen_in_seconds: Optional[int]
    """Typical wall-clock seconds for one result; null before the first run."""
    tool_tags: List[ToolTag]
    """The tags of the tool; may be empty."""
    pricing_type: PricingType
    tokens_per_result: int
    """List price of one result in whole tokens."""


class ToolTag(TypedDict):
    """A tag of tools."""

    id: str
    type: str
    """The type of the tag, such as `MEDIA` or `MODEL_FAMILY`."""
    label: str
    """Display name."""


class ToolDetail(TypedDict):
    """A tool with its form. It has all members of `Tool`, and more."""

    id: str
    slug: str
    """As in `Tool`."""
    name: str
    """As in `Tool`."""
    description: Optional[str]
    """As in `Tool`."""
    avatar_url: Optional[str]
    """As in `Tool`."""
    average_gen_in_seconds: Optional[int]
    """As in `Tool`."""
    tool_tags: List[ToolTag]
    pricing_type: PricingType
    tokens_per_result: int
    """As in `Tool`."""
    tool_fields_hash: str
    """The version of the tool. It changes with every edit; send it back when you start a run."""
    fields: List[FieldNode]
    """The form, a tree of groups and fields."""
    num_results: Optional[NumResults]
    """The allowed numbers of results of a run; null if a run always has one result."""
    output: ToolOutput
    limits: ToolLimits
    created: str
    """The time when the tool was first offered."""
    updated: str
    """The time of the last edit."""


class NumResults(TypedDict):
    """The allowed numbers of results of a run."""

    min: int
    """The minimum."""
    max: int
    """The maximum."""
    default: int
    """The initial value of a form."""


class ToolOutput(TypedDict):
    """The output of a tool."""

    type: Medium
    mime_types: List[str]
    """The possible MIME types of a result."""


class ToolLimits(TypedDict):
    """The limits of a run of the tool."""

    timeout_seconds: int
    """The time limit of a run."""


class FieldGroup(TypedDict):
    """A group of fields and groups."""

    uuid: str
    """The id of the node in this tool's form."""
    isField: Literal[False]
    label: str
    """The heading."""
    children: List[FieldNode]
    """The members of the group."""


class _FieldLeafRequired(TypedDict):
    uuid: str
    """The id of the node in this tool's form."""
    isField: Literal[True]
    fieldKey: str
    """The name of the field's value in a run's `inputs`."""
    type: FieldType
    label: str
    """Display name."""
    required: bool
    """Whether a run must have a value."""
    defaultValue: Any
    """The value of the field if it is absent; null for none."""
    display: FieldDisplay


class FieldLeaf(_FieldLeafRequired, total=False):
    """A field of the form."""

    content: str
    """The content of an `HTML` field, as HTML that can be put into a page unchanged: it was
    sanitized and has only elements of running text and links. Absent for other fields.
    """


class FieldDisplay(TypedDict, total=False):
    """The presentation of a field, and the limits of its value. Members that do not apply are
    absent. The options of a select are in exactly one of `text`, `radio` and `image`, which
    names the layout.
    """

    help: str
    """One or two sentences to show below the field."""
    placeholder: str
    """The text in an empty field."""
    advanced: bool
    """Whether to hide the field at first."""
    content: str
    """The same as the `content` of the field."""
    min: float
    """The smallest number, or the smallest width and height of a free size."""
    max: float
    """The largest number, or the largest width and height of a free size."""
    step: float
    """The step of a slider; fields of whole numbers always have it."""
    integer: bool
    """Whether only whole numbers are accepted; absent if not."""
    max_length: int
    """The maximal number of characters."""
    text: OptionList
    """Options as a list."""
    radio: OptionList
    """Options as buttons."""
    image: OptionList
    """Options as pictures."""
    select: SizeList
    """Sizes of a `WIDTH_HEIGHT` field to choose from."""
    multiple_of: int
    """The divisor of the width and height of a free size."""
    accept: List[str]
    """The MIME types that a media field accepts; absent if it accepts any."""
    max_items: int
    """The maximal number of values of a list."""


class OptionList(TypedDict):
    """The options of a select."""

    options: List[Option]


class _OptionRequired(TypedDict):
    text: str
    """Display name."""
    value: OptionValue


class Option(_OptionRequired, total=False):
    """One option."""

    image_url: str
    """URL of a PNG; only for options that are shown as pictures."""


class SizeList(TypedDict):
    """The sizes to choose from."""

    options: List[Size]


class Size(TypedDict):
    """One size in pixels."""

    text: str
    """Display name."""
    width: int
    height: int


class ToolTagList(TypedDict):
    """All tags, and their types in the same order."""

    data: List[ToolTag]
    types: List[str]


class KitList(TypedDict):
    """All kits."""

    data: List[Kit]


class Kit(TypedDict):
    """A curated shortlist of tools."""

    id: str
    label: str
    """Display name."""
    description: Optional[str]
    """The purpose."""
    kit_tags: List[str]
    """The tags of its tools, in the operator's order. Clients show them as tabs."""
    default_tool_id: str
    """The tool to show first."""
    tools: List[KitTool]


class KitTool(TypedDict):
    """A tool in a kit."""

    tool: Tool
    kit_tags: List[str]
    """Tags that the operator gave the entry."""
    labels: List[KitLabel]
    """Badges of the entry."""


class KitLabel(TypedDict):
    """A badge."""

    id: str
    """An id that the operator chose."""
    icon: str
    """Name of an icon; may be empty."""
    label: str
    """Display name."""


class _CreateGenerationRequestRequired(TypedDict):
    tool_id: str
    tool_fields_hash: str
    """The hash from the tool's detail, unchanged. Read it again for each run."""


class CreateGenerationRequest(_CreateGenerationRequestRequired, total=False):
    """A run to start."""

    inputs: Optional[Inputs]
    """The values, by the `fieldKey` of their fields. Texts are strings, numbers are numbers, a
    choice is the `value` of an option, several choices are a list, a size is `{"width",
    "height"}`, and a file is a `FileInput` (a list of them for `IMGS`). A field that is absent,
    null or empty has its `defaultValue`. An unknown key is an error.
    """
    num_results: Optional[int]
    """The number of results, within the tool's `num_results`; ignored if that is null, since such a
    tool makes exactly one. If absent or null it is 1, or the tool's `min` if that is higher; the
    tool's `default` is the initial value of a form.
    """
    webhook_url: Optional[str]
    """The URL that receives the event when the run has ended: HTTPS, port 443 or a port above 1023,
    without credentials, and not in a private network.
    """
    metadata: Optional[Metadata]
    """Any data of yours, at most 8 KB as compact JSON. The status record and the event repeat it,
    with numbers as you wrote them.
    """
    plugin: Optional[str]
    """The calling app, shown in reports."""
    retry_of: Optional[str]
    """An earlier run of the same flow that has ended. Its finished steps whose inputs are the same
    are taken over and cost nothing again. Without a seed in `inputs`, its seed is used.
    """


class SizeInput(TypedDict):
    """A size in pixels."""

    width: int
    height: int


class MultipartFile(TypedDict):
    """A file in the same request."""

    kind: Literal["MULTIPART"]
    file_index: int
    """The index of the `files` part, from 0."""


class UploadRef(TypedDict):
    """A file that was uploaded before to the same account."""

    kind: Literal["UPLOAD_REF"]
    id: str


class LibraryRef(TypedDict):
    """A result of an earlier run of the same account."""

    kind: Literal["LIBRARY_REF"]
    id: str


class GenerationCreated(TypedDict):
    """A run that was accepted."""

    request_id: str
    status: Literal["pending"]
    """Always `pending`."""
    status_url: str
    """The URL to poll. Use it unchanged."""
    retry_after_seconds: int
    """Seconds to wait before the first poll."""
    estimated_seconds: Optional[int]
    """The expected time of such a run, for this number of results; null before the tool's first
    run.
    """
    created: str
    """The time when the run was accepted."""


class _GenerationRequired(TypedDict):
    request_id: str
    status: GenerationStatus
    stage: Optional[GenerationStage]
    """The stage of a pending run; null once it has ended."""
    progress: Optional[float]
    """The progress of a running run from 0 to 1; null if it is unknown."""
    queue_position: Optional[int]
    """The approximate position in the queue, 1 for the next run; null unless the run is queued.
    While the run waits in the queue of its model server, it is the position there, or null if
    the server does not report it.
    """
    retry_after_seconds: int
    """Seconds to wait before the next poll, while the run is pending."""
    estimated_seconds: Optional[int]
    """The expected time of such a run, for this number of results; null before the tool's first
    run.
    """
    created: str
    """The time when the run was accepted."""
    started: Optional[str]
    """The time when the run started; null before, and while the run waits in the queue of its model
    server. Time spent in that queue moves it forward, so that the time from the start to the end
    is the time of work.
    """
    finished: Optional[str]
    """The time when the run ended; null before."""
    tool_id: str
    tool_name: Optional[str]
    """The current name of the tool; null if the tool is unknown."""
    uid: str
    """The person who started the run."""
    prompt: Optional[str]
    """The value of the tool's prompt field; if it has none, the prompt of the flow in which the run
    is a step. Null without both.
    """
    team_id: Optional[str]
    """The team that pays; null for the personal account."""
    num_results: int
    """The number of results requested."""
    seed: int
    """The seed of the run: the one in `inputs`, or else a random one."""
    tokens_held: int
    """The tokens that the run holds; 0 once it has ended."""
    tokens_charged: int
    """The cost of the run; 0 unless it succeeded. Of a flow, the cost of the steps that succeeded
    so far.
    """
    free_allowance_used: int
    """The part that the free allowance paid in addition; as `tokens_charged`."""
    outputs: List[GenerationOutput]
    """The results; empty unless the run succeeded. There can be fewer than requested."""
    error: Optional[GenerationError]
    """The reason of the failure; null unless the run failed."""
    metadata: Optional[Metadata]
    """The metadata of the create, with numbers as they were written; null for none."""
    webhook: Optional[GenerationWebhook]
    """The delivery of the webhook; null before the run has ended, and if it has no `webhook_url`.
    """


class Generation(_GenerationRequired, total=False):
    """A run. Once it has ended, only URLs and the webhook's state still change."""

    inputs: Inputs
    """The inputs of the run by `fieldKey`, with the defaults filled in; only with `include=inputs`.
    """
    steps: List[GenerationStep]
    """The runs of the steps of a flow, in the order in which they were started; absent for other
    tools.
    """


class GenerationStep(TypedDict):
    """A run of a step of a flow. It is a run like others, in the same account: `request_id` finds
    it.
    """

    step: str
    """The id of the step in the flow."""
    item: int
    """The item of the list for which the step ran, from 0; 0 if it runs once."""
    otherwise: bool
    """Whether the run replaces one that failed."""
    request_id: str
    tool_id: str
    tool_name: Optional[str]
    """The current name of the tool; null if the tool is unknown."""
    status: GenerationStatus
    stage: Optional[GenerationStage]
    """The stage of a pending run; null once it has ended."""
    progress: Optional[float]
    """The progress of a running run from 0 to 1; null if it is unknown."""
    started: Optional[str]
    """The time when the run started; null before."""
    finished: Optional[str]
    """The time when the run ended; null before."""
    seed: int
    """The seed of the run: of its inputs, or derived from that of the flow."""
    tokens_charged: int
    """The cost of the run; 0 unless it succeeded."""
    free_allowance_used: int
    """The part that the free allowance paid in addition."""
    reused: bool
    """Whether the run was taken over from the run of `retry_of`; its cost does not count again."""
    intermediate: bool
    """Whether its results are intermediate: not results of the flow, or not yet."""
    outputs: List[GenerationOutput]
    """The results of the run; empty unless it succeeded."""
    error: Optional[GenerationError]
    """The reason of the failure; null unless the run failed."""


class GenerationList(TypedDict):
    """A page of runs."""

    data: List[Generation]
    has_more: bool
    next_cursor: Optional[str]
    """The cursor of the next page; null on the last page."""


class GenerationOutput(TypedDict):
    """A result. Its URLs need no credential, work for at least 7 days and change once a day.
    `LIBRARY_REF` and the library use its `id`.
    """

    id: str
    url: Optional[str]
    """URL of the file; null once it has expired."""
    preview_url: Optional[str]
    """URL of a video's first frame as JPEG; null for anything else."""
    thumb_url: Optional[str]
    """URL of a thumbnail; null for none."""
    type: Medium
    mime_type: str
    """The type of the file."""
    width: Optional[int]
    """The width in pixels; null for none."""
    height: Optional[int]
    """The height in pixels; null for none."""
    duration_seconds: Optional[float]
    """The playing time to the millisecond; null if the file has none or it is unknown."""
    size_bytes: int
    """The size of the file."""
    sha256: str
    blurhash: Optional[str]
    """A placeholder while the file loads, as a BlurHash; null for none."""
    expired: bool
    """Whether the file was deleted; its record stays."""
    note: Optional[str]
    """A remark of the tool about the result: one line of plain text for people, such as the words
    of the prompt that it did not know; null for none. It can repeat words of the prompt. It is
    null once the result is deleted.
    """


class GenerationError(TypedDict):
    """The reason why a run failed. A failed run costs nothing; the steps of a flow that succeeded
    before are paid.
    """

    code: GenerationErrorCode
    message: str
    """The message for people."""
    retryable: bool
    """Whether the same request can succeed later, with a new key."""
    details: Dict[str, Any]
    """Details for programs, by code; may be empty."""


class GenerationWebhook(TypedDict):
    """The delivery of a run's webhook."""

    state: WebhookState
    attempts: int
    """The number of delivery attempts."""


class GenerationProgress(TypedDict):
    """The data of a `progress` event."""

    progress: Optional[float]
    """The progress from 0 to 1; null if it is unknown."""
    stage: GenerationStage


class GenerationPreview(TypedDict):
    """The data of a `preview` event."""

    url: str
    """URL of the picture; needs no credential."""
    mime_type: str
    """The MIME type of the picture."""


class CostPreview(TypedDict):
    """The cost of a run for the account now."""

    total_tokens: int
    """The tokens that the balance would pay for all results, without the part of the free
    allowance.
    """
    free_allowance_used: int
    """The part that the free allowance would pay in addition."""
    tokens_per_result: int
    """The price of one result."""
    estimated_seconds: Optional[int]
    """The expected time of such a run, for this number of results; null before the tool's first
    run.
    """
    can_run: bool
    """Whether the account could start it now."""
    blocking_reason: Optional[str]
    """The reason for people; null if the run can start."""


class WebhookEvent(TypedDict):
    """The webhook event of a run that has ended."""

    type: Literal["generation.succeeded", "generation.failed", "generation.cancelled"]
    """The type of the event, by the final status of the run."""
    timestamp: str
    """The time when the run ended."""
    data: Generation


class WebhookAttempt(TypedDict):
    """One attempt to deliver a webhook. The body of your server's response is not stored."""

    id: str
    """Opaque."""
    at: str
    """The time when the attempt began."""
    status_code: Optional[int]
    """The status code of your server's response; null if there was none."""
    duration_ms: int
    """The duration of the attempt in milliseconds."""
    error: Optional[str]
    """The reason of the failure, null for a success: `timeout`, `refused` (no connection), `dns`,
    `tls`, `blocked` (a forbidden address), `redirect`, `status` (not 2xx), `body` (an invalid
    response), `internal` (an error of the service). New reasons may be added.
    """


class WebhookAttemptList(TypedDict):
    """A page of attempts."""

    data: List[WebhookAttempt]
    has_more: bool
    next_cursor: Optional[str]
    """The cursor of the next page; null on the last page."""


class WebhookDelivery(TypedDict):
    """The delivery of the webhook of a run that has ended."""

    request_id: str
    """The run."""
    status: WebhookState
    attempts: int
    """The number of delivery attempts."""
    host: str
    """The host of the `webhook_url`, with the port unless it is 443. The rest of the URL can be
    secret.
    """
    status_code: Optional[int]
    """The status code of your server's response to the last attempt; null if there was none."""
    error: Optional[str]
    """The reason why the last attempt failed, as in `WebhookAttempt`; null for a success and before
    the first attempt.
    """
    created: str
    """The time when the run ended."""
    last_attempt: Optional[str]
    """The time when the last attempt began; null before the first one."""
    next_attempt: Optional[str]
    """The time from which the next attempt is made; null if none is planned."""


class WebhookDeliveryList(TypedDict):
    """A page of deliveries."""

    data: List[WebhookDelivery]
    has_more: bool
    next_cursor: Optional[str]
    """The cursor of the next page; null on the last page."""


class WebhookSecret(TypedDict):
    """The secret that signs an account's webhooks."""

    secret: str
    """`whsec_` and the key in base64. Keep it safe."""
    created: str
    """The time of creation."""
    previous_valid_until: Optional[str]
    """The end of the period in which the previous secret also signs; null if it no longer does."""


class Upload(TypedDict):
    """An uploaded file. Its URLs need no credential, work for at least 7 days and change once a
    day.
    """

    id: str
    url: str
    """URL of the file."""
    thumb_url: Optional[str]
    """URL of a thumbnail; null for none."""
    preview_url: Optional[str]
    """URL of a video's first frame as JPEG; null for anything else."""
    blurhash: Optional[str]
    """A placeholder picture as BlurHash; null for none."""
    name: str
    """The name of the file; may be empty."""
    created: str
    """The time of the upload."""
    mime_type: str
    """The type of the file."""
    type: Medium
    """The kind of media; never `TEXT`."""
    size_bytes: int
    """The size of the stored file."""
    sha256: str
    width: Optional[int]
    """The width in pixels; null for none."""
    height: Optional[int]
    """The height in pixels; null for none."""
    duration_seconds: Optional[float]
    """The playing time; null if the file has none or it is unknown."""


class UploadList(TypedDict):
    """A page of uploads."""

    data: List[Upload]
    has_more: bool
    next_cursor: Optional[str]
    """The cursor of the next page; null on the last page."""


class LibraryItem(TypedDict):
    """A result in the library. Its URLs need no credential, work for at least 7 days and change
    once a day.
    """

    id: str
    flow: Optional[LibraryItemFlow]
    """The step of a flow that made the result; null if no flow did."""
    type: Medium
    mime_type: str
    """The type of the file."""
    url: str
    """URL of the file."""
    thumb_url: Optional[str]
    """URL of a thumbnail; null for none."""
    preview_url: Optional[str]
    """URL of a video's first frame as JPEG; null for anything else."""
    blurhash: Optional[str]
    """A placeholder picture as BlurHash; null for none."""
    tool_id: str
    team_id: Optional[str]
    """The team of the result; null for the personal account."""
    request_id: str
    created: str
    """The time of creation."""
    width: Optional[int]
    """The width in pixels; null for none."""
    height: Optional[int]
    """The height in pixels; null for none."""
    duration_seconds: Optional[float]
    """The playing time; null if the file has none or it is unknown."""
    size_bytes: int
    """The size of the file."""
    sha256: str
    favorited: bool
    """Whether it is a favourite of the caller."""
    prompt: Optional[str]
    """The prompt of the run; if its tool has none, the prompt of the flow in which the run is a
    step. Null without both.
    """
    note: Optional[str]
    """A remark of the tool about the result, as in `GenerationOutput`; null for none."""


class LibraryItemFlow(TypedDict):
    """A step of a flow."""

    request_id: str
    """The run of the flow."""
    step: str
    """The id of the step in the flow."""
    intermediate: bool
    """Whether the result is only an intermediate one."""


class LibraryItemDetail(TypedDict):
    """A result with the inputs of its run. It has all members of `LibraryItem`, and more."""

    id: str
    flow: Optional[LibraryItemFlow]
    """As in `LibraryItem`."""
    type: Medium
    mime_type: str
    """As in `LibraryItem`."""
    url: str
    """As in `LibraryItem`."""
    thumb_url: Optional[str]
    """As in `LibraryItem`."""
    preview_url: Optional[str]
    """URL of a video's first frame as JPEG; null for anything else."""
    blurhash: Optional[str]
    """A placeholder picture as BlurHash; null for none."""
    tool_id: str
    team_id: Optional[str]
    """As in `LibraryItem`."""
    request_id: str
    created: str
    """As in `LibraryItem`."""
    width: Optional[int]
    """As in `LibraryItem`."""
    height: Optional[int]
    """As in `LibraryItem`."""
    duration_seconds: Optional[float]
    """As in `LibraryItem`."""
    size_bytes: int
    """As in `LibraryItem`."""
    sha256: str
    favorited: bool
    """As in `LibraryItem`."""
    prompt: Optional[str]
    """As in `LibraryItem`."""
    note: Optional[str]
    """As in `LibraryItem`."""
    inputs: Inputs
    """The inputs of the run by `fieldKey`, with the defaults filled in."""


class LibraryList(TypedDict):
    """A page of results."""

    data: List[LibraryItem]
    has_more: bool
    next_cursor: Optional[str]
    """The cursor of the next page; null on the last page."""


class LibraryMarks(TypedDict):
    """Places in a list of results."""

    total: int
    """The number of results in the list."""
    marks: List[LibraryMark]
    """The places, in the order of the list. The first one is the first result."""


class LibraryMark(TypedDict):
    """A place in a list of results."""

    index: int
    """The number of the result at this place, from 0."""
    cursor: Optional[str]
    """The `cursor` with which `GET /library` returns the page that begins at this place; null for
    the first result, which needs none.
    """
    created: str
    """The time when the result at this place was created."""


class _FlowDraftRequired(TypedDict):
    name: str
    """Display name; leading and trailing spaces are removed."""
    steps: List[FlowStep]
    """The steps, as in a manifest."""


class FlowDraft(_FlowDraftRequired, total=False):
    """A flow that is to be saved."""

    description: Optional[str]
    """What the flow is for."""
    fields: Optional[List[FlowField]]
    """The fields of the flow's form, as in a manifest."""
    results: Optional[List[str]]
    """The ids of the steps whose results are those of the flow; the last step if there are none."""
    shared: Optional[bool]
    """Whether all teams of the company can use the flow; not if it is left out."""


class _FlowChangeRequired(TypedDict):
    version: int
    """The version that you have read."""
    name: str
    """Display name; leading and trailing spaces are removed."""
    steps: List[FlowStep]
    """The steps, as in a manifest."""


class FlowChange(_FlowChangeRequired, total=False):
    """A new version of a flow."""

    description: Optional[str]
    """What the flow is for."""
    fields: Optional[List[FlowField]]
    """The fields of the flow's form, as in a manifest."""
    results: Optional[List[str]]
    """The ids of the steps whose results are those of the flow; the last step if there are none."""
    shared: Optional[bool]
    """Whether all teams of the company can use the flow; not if it is left out."""


class FlowOrigin(TypedDict):
    """A result from whose history a flow is made."""

    library_id: str


class FlowProblem(TypedDict):
    """Why a flow cannot be saved."""

    path: str
    """The place in the flow, such as `steps.1.inputs.picture`; empty for the whole flow."""
    message: str
    """The message for people."""


class FlowCheck(TypedDict):
    """What is wrong with a flow, and what a run of it can cost."""

    problems: List[FlowProblem]
    price: Optional[FlowPrice]
    """What a run can cost; null if the problems do not let it be known."""


class FlowPrice(TypedDict):
    """What a run of a flow costs at most, over all values of its form."""

    tokens: int
    """The highest price."""
    formula: str
    """How the price is computed."""
    steps: List[FlowShare]
    """The parts of the price. A step with `otherwise` has two."""


class FlowShare(TypedDict):
    """The part of a step in the price of a flow."""

    step: str
    """The id of the step."""
    tool: str
    """The slug of the tool."""
    runs: int
    """How often the tool runs at most."""
    tokens: int
    """The price of one run."""


class FlowSummary(TypedDict):
    """A saved flow without its steps."""

    id: str
    slug: str
    """The name of the flow's tool, by which other flows can use it as a step."""
    name: str
    """Display name."""
    description: str
    """What the flow is for."""
    team_id: Optional[str]
    """The team of the flow; null for the personal account."""
    uid: str
    """The person who made it."""
    version: int
    """Grows with every change."""
    shared: bool
    """Whether all teams of the company can use the flow."""
    created: str
    """The time of creation."""
    updated: str
    """The time of the last change."""


class Flow(TypedDict):
    """A saved flow. It has all members of `FlowSummary`, and more."""

    id: str
    slug: str
    """The name of the flow's tool, by which other flows can use it as a step."""
    name: str
    """Display name."""
    description: str
    """What the flow is for."""
    team_id: Optional[str]
    """The team of the flow; null for the personal account."""
    uid: str
    """The person who made it."""
    version: int
    """Grows with every change."""
    shared: bool
    """Whether all teams of the company can use the flow."""
    created: str
    """The time of creation."""
    updated: str
    """The time of the last change."""
    fields: List[FlowField]
    """The fields of the flow's form, as in a manifest."""
    steps: List[FlowStep]
    """The steps, as in a manifest."""
    results: List[str]
    """The ids of the steps whose results are those of the flow; the last step if there are none."""


class FlowList(TypedDict):
    """Saved flows."""

    data: List[FlowSummary]


class FlowVersion(TypedDict):
    """A saved version of a flow."""

    version: int
    """The number of the version."""
    uid: str
    """The person who saved it."""
    created: str
    """The time at which it was saved."""
    name: str
    """Display name."""
    description: str
    """What the flow is for."""
    fields: List[FlowField]
    """The fields of the flow's form, as in a manifest."""
    steps: List[FlowStep]
    """The steps, as in a manifest."""
    results: List[str]
    """The ids of the steps whose results are those of the flow; the last step if there are none."""


class FlowVersionList(TypedDict):
    """The versions of a flow."""

    data: List[FlowVersion]


class BoardDraft(TypedDict):
    """The data of a board."""

    name: str
    """Display name; leading and trailing spaces are removed."""


class BoardSummary(TypedDict):
    """A board without its nodes."""

    id: str
    name: str
    """Display name."""
    team_id: Optional[str]
    """The team of the board; null for the personal account."""
    revision: int
    """Grows with every change of the board and its nodes."""
    created: str
    """The time of creation."""
    updated: str
    """The time of the last change of the board or a node."""
    deleted: Optional[str]
    """The time of the deletion; null if it is not deleted."""
    uid: str
    """The person who created it."""
    node_count: int
    """The number of nodes."""


class Board(TypedDict):
    """A board with a page of its nodes. It has all members of `BoardSummary`, and more."""

    id: str
    name: str
    """As in `BoardSummary`."""
    team_id: Optional[str]
    """As in `BoardSummary`."""
    revision: int
    """As in `BoardSummary`."""
    created: str
    """As in `BoardSummary`."""
    updated: str
    """As in `BoardSummary`."""
    deleted: Optional[str]
    """As in `BoardSummary`."""
    uid: str
    """The person who created it."""
    node_count: int
    """As in `BoardSummary`."""
    nodes: List[Node]
    """A page of the nodes."""
    has_more: bool
    """Whether more nodes follow."""
    next_cursor: Optional[str]
    """The cursor of the next page of nodes; null on the last page."""


class BoardList(TypedDict):
    """A page of boards."""

    data: List[BoardSummary]
    has_more: bool
    next_cursor: Optional[str]
    """The cursor of the next page; null on the last page."""


class Node(TypedDict):
    """A node of a board."""

    id: str
    kind: NodeKind
    ref: Optional[str]
    """The id of the result or upload, or the `request_id` of the run; null for texts."""
    text: str
    """The text; may be empty."""
    x: float
    """The distance from the left."""
    y: float
    """The distance from the top."""
    width: float
    """The width; 0 for the natural width."""
    height: float
    """The height; 0 for the natural height."""
    z: int
    """The stacking order; higher nodes are on top."""
    created: str
    """The time when it was added."""
    revision: int
    """The board's revision at the last change of the node."""
    uid: Optional[str]
    """The person who added the node or changed it last; null if an older release stored the change.
    """
    missing: bool
    """Whether the referenced object was deleted or has expired."""
    item: Optional[NodeItem]
    """The result or upload; null for other kinds and if it is missing."""
    status: Optional[GenerationStatus]
    """The status of the run; null for other kinds and if it is missing."""


class NodeItem(TypedDict):
    """The file of a node. Its URLs need no credential, work for at least 7 days and change once a
    day.
    """

    type: Medium
    mime_type: str
    """The type of the file."""
    url: str
    """URL of the file."""
    thumb_url: Optional[str]
    """URL of a thumbnail; null for none."""
    preview_url: Optional[str]
    """URL of a video's first frame as JPEG; null for anything else."""
    blurhash: Optional[str]
    """A placeholder picture as BlurHash; null for none."""
    width: Optional[int]
    """The width in pixels; null for none."""
    height: Optional[int]
    """The height in pixels; null for none."""
    duration_seconds: Optional[float]
    """The playing time; null if the file has none or it is unknown."""
    size_bytes: int
    """The size of the file."""


class _NodeDraftRequired(TypedDict):
    kind: NodeKind


class NodeDraft(_NodeDraftRequired, total=False):
    """A node to add. Numbers are between minus and plus one billion, sizes are not negative."""

    ref: Optional[str]
    """The id of the result, upload or run; not for texts."""
    text: Optional[str]
    """The text."""
    x: Optional[float]
    """0 by default."""
    y: Optional[float]
    """0 by default."""
    width: Optional[float]
    """0 by default."""
    height: Optional[float]
    """0 by default."""
    z: Optional[int]
    """On top of all other nodes by default."""


class NodeChange(TypedDict, total=False):
    """The changes to a node."""

    ref: Optional[str]
    """The id of another object of the same kind; not for texts."""
    text: Optional[str]
    x: Optional[float]
    y: Optional[float]
    width: Optional[float]
    height: Optional[float]
    z: Optional[int]


class NodeUpdate(NodeChange):
    """The changes to a node, with its id."""

    id: str


class NodeChanges(TypedDict, total=False):
    """The changes to nodes, 1 to 1,000 in all and each node at most once."""

    create: Optional[List[NodeDraft]]
    """Nodes to add."""
    update: Optional[List[NodeUpdate]]
    """Nodes to change."""
    delete: Optional[List[str]]
    """The ids of nodes to delete."""


class NodeChangesResult(TypedDict):
    """The changes that were made to nodes."""

    revision: int
    """The revision of the board after the change."""
    created: List[Node]
    """The added nodes, in the order of the request."""
    updated: List[Node]
    """The changed nodes, in the order of the request."""
    deleted: List[str]
    """The ids of the deleted nodes."""


class BoardChange(TypedDict):
    """Changes of a board's nodes."""

    board_id: str
    revision: int
    """The revision of the board with these changes."""
    put: List[Node]
    """The current state of the nodes that were added or changed."""
    deleted: List[str]
    """The ids of the deleted nodes."""


class RunPreview(TypedDict):
    """The data of a `preview` event of an account."""

    request_id: str
    url: str
    """URL of the picture; needs no credential."""
    mime_type: str
    """The MIME type of the picture."""


class EventReset(TypedDict):
    """The data of a `reset` event of an account."""

    board_id: Optional[str]
    """The board to read again; null for the runs of the account."""


class EventReconnect(TypedDict):
    """The data of a `reconnect` event."""

    reason: str
    """Why the connection ends, for people."""


class BoardPresence(TypedDict):
    """The people who look at a board, sorted by `uid`."""

    board_id: str
    people: List[BoardViewer]
    """The people, you among them. At most 100."""


class BoardViewer(TypedDict):
    """A person who looks at a board."""

    uid: str
    name: str
    """The display name: the part of the e-mail address before the @."""
    cursor: Optional[BoardPoint]
    """The place of the cursor; null if it is not on the board."""
    selected: List[str]
    """The ids of the selected nodes. A node may have been deleted since."""


class BoardPoint(TypedDict):
    """A place on a board."""

    x: float
    """The distance from the left."""
    y: float
    """The distance from the top."""


class PresenceDraft(TypedDict, total=False):
    """The cursor and the selection to show to others."""

    cursor: Optional[BoardPoint]
    """The place of your cursor; absent or null if it is not on the board."""
    selected: Optional[List[str]]
    """The ids of the nodes that you have selected."""


class UsageCount(TypedDict):
    """Sums over runs that have ended."""

    runs: int
    """The number of runs that ended."""
    succeeded: int
    failed: int
    cancelled: int
    results: int
    """The number of results."""
    tokens_charged: int
    """The tokens that the runs cost, as in the ledger."""
    free_allowance_used: int
    """The part that the free allowance paid."""
    generation_seconds: float
    """The total time that the runs took, without time in queues."""


class _UsageRowRequired(TypedDict):
    runs: int
    """The number of runs that ended."""
    succeeded: int
    failed: int
    cancelled: int
    results: int
    """The number of results."""
    tokens_charged: int
    """The tokens that the runs cost, as in the ledger."""
    free_allowance_used: int
    """The part that the free allowance paid."""
    generation_seconds: float
    """The total time that the runs took, without time in queues."""


class UsageRow(_UsageRowRequired, total=False):
    """The sums of a group. It has only the keys of the requested groups."""

    day: str
    """The day in the company's time zone."""
    team_id: str
    team_name: str
    uid: str
    email: Optional[str]
    """The person's e-mail address; null for a deleted person."""
    person: str
    """The e-mail address, or `deleted person`."""
    tool_id: str
    tool_name: Optional[str]
    """The name of the tool, even if it is no longer offered; null if it is unknown."""
    plugin: str
    """The `plugin` of the runs; empty if they had none."""
    credential: CredentialKind
    credential_id: str
    """The id of the device or of the access token."""
    credential_name: Optional[str]
    """The name of the access token, or the kind of the device's plugin; null if it has none or was
    deleted.
    """
    flow_id: str
    flow_name: Optional[str]
    """The name of the flow, even if it was deleted; null if it is unknown."""


class _UsageReportRequired(TypedDict):
    data: List[UsageRow]
    has_more: bool
    next_cursor: Optional[str]
    """The cursor of the next page; null on the last page."""
    totals: UsageCount
    time_zone: str
    start_utc: str
    """The start of the period."""
    end_utc: str
    """The end of the period."""


class UsageReport(_UsageReportRequired, total=False):
    """A page of a report."""

    storage: StorageReport


class StorageReport(TypedDict):
    """The current storage of the company's teams, whatever the period of the report; of one team if
    `team_id` is given. Only the first page has it.
    """

    used_bytes: int
    """The bytes stored by all teams."""
    teams: List[TeamStorage]
    """The teams that store files, the largest first."""


class TeamStorage(TypedDict):
    """The storage of a team."""

    team_id: str
    team_name: str
    used_bytes: int
    limit_bytes: Optional[int]
    """The limit of stored bytes; null for none."""


class RunRow(TypedDict):
    """A run that has ended."""

    request_id: str
    status: Literal["succeeded", "failed", "cancelled"]
    error_code: Optional[str]
    """The error code of a failed run; null for others."""
    created: str
    started: Optional[str]
    """The time when the run started; null if it never did."""
    finished: str
    team_id: str
    team_name: str
    uid: str
    email: Optional[str]
    """The person's e-mail address; null for a deleted person."""
    person: str
    """The e-mail address, or `deleted person`."""
    tool_id: str
    tool_name: Optional[str]
    """The name of the tool, even if it is no longer offered; null if it is unknown."""
    plugin: str
    """The `plugin` of the run; may be empty."""
    credential: CredentialKind
    credential_id: str
    """The id of the device or of the access token."""
    credential_name: Optional[str]
    """The name of the access token, or the kind of the device's plugin; null if it has none or was
    deleted.
    """
    num_results: int
    """The number of results requested."""
    results: int
    """The number of results that the run made."""
    tokens_charged: int
    free_allowance_used: int
    generation_seconds: float
    """The time from the start to the end of the run, without time in queues."""


class RunReport(TypedDict):
    """A page of a report."""

    data: List[RunRow]
    has_more: bool
    next_cursor: Optional[str]
    """The cursor of the next page; null on the last page."""
    totals: UsageCount
    time_zone: str
    start_utc: str
    """The start of the period."""
    end_utc: str
    """The end of the period."""


class _BudgetDraftRequired(TypedDict):
    tokens: int
    """The tokens for a calendar month."""


class BudgetDraft(_BudgetDraftRequired, total=False):
    """The data of a budget."""

    hard: Optional[bool]
    """Whether runs that would exceed the budget are refused; false by default."""
    webhook_url: Optional[str]
    """The URL that receives alerts. The rules for runs apply: HTTPS, and a public address."""


class Budget(TypedDict):
    """The budget of a team, and its current state."""

    team_id: str
    tokens: int
    """The tokens for a calendar month."""
    hard: bool
    """Whether runs that would exceed the budget are refused."""
    webhook_url: Optional[str]
    """The URL that receives alerts; null for none."""
    month: str
    """The month in the company's time zone."""
    spent: int
    """The cost of the runs that ended in the month."""
    percent: int
    """The spent part of the budget in percent, rounded down."""
    told_percent: Literal[0, 50, 80, 100]
    """The highest threshold in percent that an alert was sent for."""
    created: str
    updated: str


class BudgetEvent(TypedDict):
    """The webhook event of a budget, signed like the events of runs (Standard Webhooks)."""

    type: Literal["budget.reached"]
    timestamp: str
    data: BudgetAlert


class BudgetAlert(TypedDict):
    """A budget threshold that was reached."""

    company_id: str
    team_id: str
    team_name: str
    month: str
    threshold_percent: Literal[50, 80, 100]
    tokens: int
    """The budget."""
    spent: int
    """The tokens that were spent."""


class ScimToken(TypedDict):
    """The SCIM token of a company."""

    url: str
    """The URL for the identity provider."""
    token: Optional[str]
    """The token; only in the response that created it."""
    hint: str
    """The last characters of the token."""
    created: str
    last_used: Optional[str]
    """The time of the last use; null before the first use."""


class AccountDeletion(TypedDict):
    """The confirmation of an account deletion."""

    email: str


class Error(TypedDict):
    """The body of every response that is not a success."""

    error: ErrorBody


class ErrorBody(TypedDict):
    """The error."""

    code: ErrorCode
    message: str
    """The message for people."""
    retryable: bool
    """Whether the same request can succeed later."""
    details: Dict[str, Any]
    """Details for programs, by code. `INVALID_REQUEST` has `fields`, a list of every problem as
    `{"path", "message"}`. 413 and 415 have `path`, the refused part of the request.
    `RATE_LIMITED` has `limit`, the number allowed in any `window_seconds` (0: at the same time),
    and `retry_after_seconds`, the same as `Retry-After`.
    """
    trace_id: str
    """The id of this request in the service's logs; also in the header `X-Trace-Id`."""
