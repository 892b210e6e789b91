package main

// operation gives an operation of the OpenAPI document its place in the client
// package.
type operation struct {
	id     string // operationId
	group  string // field of client.Calls, such as "Tools"
	method string // method of the group's type, such as "List"
	// all is the method that iterates over the items of all pages; "" for none.
	all string
	// manual operations are written by hand, because they stream, send files or
	// hand out a type with behaviour. The generator writes no method for them.
	manual bool
	// repeat marks requests that are safe to send twice although their method
	// is POST or PATCH: their effect is the same if the first answer was lost.
	repeat bool
}

// operations has a line for every operation of api/openapi.yaml.
var operations = []operation{
	{id: "startDevice", group: "SignIn", method: "StartDevice", repeat: true},
	{id: "pollDevice", group: "SignIn", method: "PollDevice"},
	{id: "pollDeviceByBody", group: "SignIn", method: "PollDeviceByBody"},
	{id: "refreshToken", group: "SignIn", method: "RefreshToken", repeat: true},
	{id: "createWebToken", group: "SignIn", method: "CreateWebToken", repeat: true},
	{id: "endSession", group: "SignIn", method: "EndSession"},
	{id: "signOutEverywhere", group: "SignIn", method: "SignOutEverywhere"},
	{id: "listDevices", group: "Devices", method: "List", all: "All"},
	{id: "revokeDevice", group: "Devices", method: "Revoke"},

	{id: "getMe", group: "Me", method: "Get"},
	{id: "deleteMe", group: "Me", method: "Delete"},
	{id: "exportMe", group: "Me", method: "Export"},
	{id: "claimTopUp", group: "Me", method: "ClaimTopUp"},
	{id: "listLedger", group: "Ledger", method: "List", all: "All"},

	{id: "listAccessTokens", group: "AccessTokens", method: "List", all: "All"},
	{id: "createAccessToken", group: "AccessTokens", method: "Create"},
	{id: "deleteAccessToken", group: "AccessTokens", method: "Delete"},
	{id: "regenerateAccessToken", group: "AccessTokens", method: "Regenerate"},
	{id: "listCompanyAccessTokens", group: "CompanyTokens", method: "List", all: "All"},
	{id: "createCompanyAccessToken", group: "CompanyTokens", method: "Create"},
	{id: "deleteCompanyAccessToken", group: "CompanyTokens", method: "Delete"},
	{id: "regenerateCompanyAccessToken", group: "CompanyTokens", method: "Regenerate"},

	{id: "listCompanies", group: "Companies", method: "List"},
	{id: "getCompany", group: "Companies", method: "Get"},
	{id: "changeCompany", group: "Companies", method: "Change", repeat: true},
	{id: "listAudit", group: "Companies", method: "ListAudit", all: "AllAudit"},
	{id: "listMembers", group: "Members", method: "List", all: "All"},
	{id: "setMember", group: "Members", method: "Set"},
	{id: "removeMember", group: "Members", method: "Remove"},
	{id: "listRoles", group: "Roles", method: "List"},
	{id: "setRole", group: "Roles", method: "Set"},
	{id: "deleteRole", group: "Roles", method: "Delete"},
	{id: "listDomains", group: "Domains", method: "List"},
	{id: "addDomain", group: "Domains", method: "Add"},
	{id: "removeDomain", group: "Domains", method: "Remove"},
	{id: "verifyDomain", group: "Domains", method: "Verify", repeat: true},
	{id: "getScimToken", group: "ScimTokens", method: "Get"},
	{id: "createScimToken", group: "ScimTokens", method: "Create"},
	{id: "deleteScimToken", group: "ScimTokens", method: "Delete"},

	{id: "listTeams", group: "Teams", method: "List", all: "All"},
	{id: "createTeam", group: "Teams", method: "Create"},
	{id: "getTeam", group: "Teams", method: "Get"},
	{id: "renameTeam", group: "Teams", method: "Rename", repeat: true},
	{id: "removeTeam", group: "Teams", method: "Remove"},
	{id: "getBudget", group: "Budgets", method: "Get"},
	{id: "setBudget", group: "Budgets", method: "Set"},
	{id: "deleteBudget", group: "Budgets", method: "Delete"},
	{id: "listTeamMembers", group: "TeamMembers", method: "List", all: "All"},
	{id: "setTeamMember", group: "TeamMembers", method: "Set"},
	{id: "removeTeamMember", group: "TeamMembers", method: "Remove"},
	{id: "listTeamRoles", group: "TeamRoles", method: "List"},
	{id: "setTeamRole", group: "TeamRoles", method: "Set"},
	{id: "deleteTeamRole", group: "TeamRoles", method: "Delete"},

	{id: "listInvitations", group: "Invitations", method: "List", all: "All"},
	{id: "createInvitation", group: "Invitations", method: "Create"},
	{id: "listMyInvitations", group: "Invitations", method: "ListMine"},
	{id: "acceptInvitation", group: "Invitations", method: "AcceptLink"},
	{id: "revokeInvitation", group: "Invitations", method: "Revoke"},
	{id: "acceptMyInvitation", group: "Invitations", method: "Accept"},

	{id: "listTools", group: "Tools", method: "List", all: "All"},
	{id: "getTool", group: "Tools", method: "Get"},
	{id: "listToolTags", group: "Tools", method: "ListTags"},
	{id: "listKits", group: "Tools", method: "ListKits"},

	{id: "createGeneration", group: "Runs", method: "Create", manual: true},
	{id: "previewCost", group: "Runs", method: "PreviewCost", manual: true},
	{id: "getGeneration", group: "Runs", method: "Get", manual: true},
	{id: "cancelGeneration", group: "Runs", method: "Cancel", manual: true},
	{id: "streamGeneration", group: "Runs", method: "Events", manual: true},
	{id: "listGenerations", group: "Runs", method: "List", all: "All"},

	{id: "listWebhookAttempts", group: "Webhooks", method: "ListAttempts", all: "AllAttempts"},
	{id: "redeliverWebhook", group: "Webhooks", method: "Redeliver"},
	{id: "listWebhookDeliveries", group: "Webhooks", method: "ListDeliveries", all: "AllDeliveries"},
	{id: "getWebhookSecret", group: "Webhooks", method: "GetSecret"},
	{id: "rotateWebhookSecret", group: "Webhooks", method: "RotateSecret"},

	{id: "createUpload", group: "Uploads", method: "Create", manual: true},
	{id: "describeResumableUploads", group: "Uploads", method: "DescribeResumable", manual: true},
	{id: "createResumableUpload", group: "Uploads", method: "Create", manual: true},
	{id: "getResumableUpload", group: "Uploads", method: "Create", manual: true},
	{id: "appendResumableUpload", group: "Uploads", method: "Create", manual: true},
	{id: "deleteResumableUpload", group: "Uploads", method: "Create", manual: true},
	{id: "listUploads", group: "Uploads", method: "List", all: "All"},
	{id: "getUpload", group: "Uploads", method: "Get"},
	{id: "deleteUpload", group: "Uploads", method: "Delete"},

	{id: "listLibrary", group: "Library", method: "List", all: "All"},
	{id: "listLibraryMarks", group: "Library", method: "ListMarks"},
	{id: "getLibraryItem", group: "Library", method: "Get"},
	{id: "deleteLibraryItem", group: "Library", method: "Delete"},
	{id: "restoreLibraryItem", group: "Library", method: "Restore", repeat: true},
	{id: "addFavorite", group: "Library", method: "AddFavorite"},
	{id: "removeFavorite", group: "Library", method: "RemoveFavorite"},

	{id: "listFlows", group: "Flows", method: "List"},
	{id: "createFlow", group: "Flows", method: "Create"},
	{id: "checkFlow", group: "Flows", method: "Check", repeat: true},
	{id: "draftFlow", group: "Flows", method: "Draft", repeat: true},
	{id: "getFlow", group: "Flows", method: "Get"},
	{id: "changeFlow", group: "Flows", method: "Change"},
	{id: "deleteFlow", group: "Flows", method: "Delete"},
	{id: "listFlowVersions", group: "Flows", method: "ListVersions"},

	{id: "listBoards", group: "Boards", method: "List", all: "All"},
	{id: "createBoard", group: "Boards", method: "Create"},
	{id: "getBoard", group: "Boards", method: "Get"},
	{id: "renameBoard", group: "Boards", method: "Rename"},
	{id: "deleteBoard", group: "Boards", method: "Delete"},
	{id: "restoreBoard", group: "Boards", method: "Restore", repeat: true},
	{id: "addNode", group: "Boards", method: "AddNode"},
	{id: "changeNodes", group: "Boards", method: "ChangeNodes"},
	{id: "changeNode", group: "Boards", method: "ChangeNode"},
	{id: "deleteNode", group: "Boards", method: "DeleteNode"},
	{id: "streamBoard", group: "Boards", method: "Events", manual: true},
	{id: "setPresence", group: "Boards", method: "SetPresence"},
	{id: "streamEvents", group: "Account", method: "Events", manual: true},

	{id: "reportUsage", group: "Reports", method: "Usage", all: "AllUsage"},
	{id: "reportRuns", group: "Reports", method: "Runs", all: "AllRuns"},

	{id: "getMedia", group: "Media", method: "Fetch", manual: true},
	{id: "getMediaWithoutName", group: "Media", method: "Fetch", manual: true},

	{id: "getOperatorStatus", group: "Operator", method: "Status"},
	{id: "listOperatorRuns", group: "Operator", method: "ListRuns", all: "AllRuns"},
	{id: "cancelOperatorRun", group: "Operator", method: "CancelRun", repeat: true},
	{id: "listOperatorPeople", group: "Operator", method: "ListPeople", all: "AllPeople"},
	{id: "listOperatorCompanies", group: "Operator", method: "ListCompanies", all: "AllCompanies"},
	{id: "createOperatorGrant", group: "Operator", method: "Grant", repeat: true},
	{id: "listOperatorSettings", group: "Operator", method: "ListSettings"},

	{id: "getOpenAPI", group: "Service", method: "OpenAPI"},
}

// typeNames are the Go names of schemas whose own name is not the word that
// people use: the API calls a run a "generation" in its addresses only.
var typeNames = map[string]string{
	"CreateGenerationRequest": "runDraft",
	"ErrorCode":               "Code",
	"Generation":              "RunRecord",
	"GenerationCreated":       "runCreated",
	"GenerationError":         "RunFailure",
	"GenerationErrorCode":     "FailureCode",
	"GenerationInclude":       "RunInclude",
	"GenerationList":          "RunList",
	"GenerationOutput":        "Output",
	"GenerationPreview":       "Preview",
	"GenerationProgress":      "RunProgress",
	"GenerationStage":         "RunStage",
	"GenerationStatus":        "RunStatus",
	"GenerationStep":          "RunStep",
	"GenerationWebhook":       "RunWebhook",
}

// skippedTypes are the schemas that have no Go type of their own: forms and
// streams, which are written and read by hand, and values of any type.
var skippedTypes = map[string]bool{
	"AccountEvents": true, "BoardEvents": true, "BooleanInput": true, "CreateGenerationForm": true, "Error": true,
	"ErrorBody": true, "FileBytes": true, "FileInput": true, "GenerationEvents": true, "InputValue": true, "Inputs": true,
	"ListInput": true, "ListItemInput": true, "Metadata": true, "NumberInput": true, "OptionValue": true, "TextInput": true,
	"UploadForm": true, "FieldGroup": true, "FieldLeaf": true,
}

// unionTypes are schemas with oneOf that become one struct with the members of
// all alternatives.
var unionTypes = map[string]bool{"FieldNode": true}
