package main

import (
	"fmt"
	"slices"
	"strings"
)

// resource is a group of calls in a library: client.boards.
type resource struct {
	name  string // in the words of Python: access_tokens
	doc   string
	calls []call
	// extended is set if the library adds calls by hand.
	extended bool
}

// call names an operation within its resource.
type call struct {
	name      string // in the words of Python: list_members
	operation string
}

// resources gives every operation its place in the libraries.
var resources = []resource{
	{"auth", "Sign-in of a device, step by step; the client's sign_in does it whole.", []call{
		{"start_device", "startDevice"},
		{"poll_device", "pollDeviceByBody"},
		{"refresh_token", "refreshToken"},
		{"revoke_device", "revokeDevice"},
		{"end_session", "endSession"},
		{"sign_out_everywhere", "signOutEverywhere"},
		{"list_devices", "listDevices"},
	}, false},
	{"me", "The caller and their accounts.", []call{
		{"get", "getMe"},
		{"delete", "deleteMe"},
		{"claim_top_up", "claimTopUp"},
		{"list_ledger", "listLedger"},
	}, true},
	{"access_tokens", "Long-lived credentials for scripts, of a person or of a company.", []call{
		{"list", "listAccessTokens"},
		{"create", "createAccessToken"},
		{"delete", "deleteAccessToken"},
		{"regenerate", "regenerateAccessToken"},
		{"list_of_company", "listCompanyAccessTokens"},
		{"create_for_company", "createCompanyAccessToken"},
		{"delete_of_company", "deleteCompanyAccessToken"},
		{"regenerate_of_company", "regenerateCompanyAccessToken"},
	}, false},
	{"companies", "Companies with their members, roles, mail domains and audit log.", []call{
		{"list", "listCompanies"},
		{"get", "getCompany"},
		{"change", "changeCompany"},
		{"list_members", "listMembers"},
		{"set_member", "setMember"},
		{"remove_member", "removeMember"},
		{"list_roles", "listRoles"},
		{"set_role", "setRole"},
		{"delete_role", "deleteRole"},
		{"list_domains", "listDomains"},
		{"add_domain", "addDomain"},
		{"remove_domain", "removeDomain"},
		{"verify_domain", "verifyDomain"},
		{"list_audit", "listAudit"},
		{"get_scim_token", "getScimToken"},
		{"create_scim_token", "createScimToken"},
		{"delete_scim_token", "deleteScimToken"},
	}, false},
	{"teams", "Teams of a company, which share tools, files and a balance.", []call{
		{"list", "listTeams"},
		{"create", "createTeam"},
		{"get", "getTeam"},
		{"rename", "renameTeam"},
		{"remove", "removeTeam"},
		{"get_budget", "getBudget"},
		{"set_budget", "setBudget"},
		{"delete_budget", "deleteBudget"},
		{"list_members", "listTeamMembers"},
		{"set_member", "setTeamMember"},
		{"remove_member", "removeTeamMember"},
		{"list_roles", "listTeamRoles"},
		{"set_role", "setTeamRole"},
		{"delete_role", "deleteTeamRole"},
	}, false},
	{"invitations", "Invitations to companies and teams.", []call{
		{"list", "listInvitations"},
		{"create", "createInvitation"},
		{"revoke", "revokeInvitation"},
		{"list_mine", "listMyInvitations"},
		{"accept", "acceptInvitation"},
		{"accept_mine", "acceptMyInvitation"},
	}, false},
	{"tools", "The tools that an account may use, their tags, kits and forms.", []call{
		{"list", "listTools"},
		{"get", "getTool"},
		{"list_tags", "listToolTags"},
		{"list_kits", "listKits"},
	}, false},
	{"runs", "Runs of tools: prices, creation, status and results.", []call{
		{"get", "getGeneration"},
		{"cancel", "cancelGeneration"},
		{"events", "streamGeneration"},
		{"list", "listGenerations"},
	}, true},
	{"webhooks", "Notifications to your server when a run has ended.", []call{
		{"list_attempts", "listWebhookAttempts"},
		{"redeliver", "redeliverWebhook"},
		{"list_deliveries", "listWebhookDeliveries"},
		{"get_secret", "getWebhookSecret"},
		{"rotate_secret", "rotateWebhookSecret"},
	}, false},
	{"uploads", "Files that people upload as inputs of runs.", []call{
		{"list", "listUploads"},
		{"get", "getUpload"},
		{"delete", "deleteUpload"},
	}, true},
	{"library", "Results of runs.", []call{
		{"list", "listLibrary"},
		{"list_marks", "listLibraryMarks"},
		{"get", "getLibraryItem"},
		{"delete", "deleteLibraryItem"},
		{"restore", "restoreLibraryItem"},
		{"add_favorite", "addFavorite"},
		{"remove_favorite", "removeFavorite"},
	}, false},
	{"flows", "Flows that people save, several tools as one run.", []call{
		{"list", "listFlows"},
		{"create", "createFlow"},
		{"check", "checkFlow"},
		{"draft", "draftFlow"},
		{"get", "getFlow"},
		{"change", "changeFlow"},
		{"delete", "deleteFlow"},
		{"list_versions", "listFlowVersions"},
	}, false},
	{"boards", "Boards on which people arrange uploads, results, texts and runs.", []call{
		{"list", "listBoards"},
		{"create", "createBoard"},
		{"get", "getBoard"},
		{"rename", "renameBoard"},
		{"delete", "deleteBoard"},
		{"restore", "restoreBoard"},
		{"add_node", "addNode"},
		{"change_nodes", "changeNodes"},
		{"change_node", "changeNode"},
		{"delete_node", "deleteNode"},
		{"events", "streamBoard"},
		{"set_presence", "setPresence"},
	}, false},
	{"events", "One stream of everything that changes in an account.", []call{
		{"stream", "streamEvents"},
	}, false},
	{"reports", "Usage reports of a company.", []call{
		{"usage", "reportUsage"},
		{"runs", "reportRuns"},
	}, true},
	{"operator", "The whole installation, for the people whom the setting operators names.", []call{
		{"get_status", "getOperatorStatus"},
		{"list_runs", "listOperatorRuns"},
		{"cancel_run", "cancelOperatorRun"},
		{"list_people", "listOperatorPeople"},
		{"list_companies", "listOperatorCompanies"},
		{"create_grant", "createOperatorGrant"},
		{"list_settings", "listOperatorSettings"},
	}, false},
	{"service", "The service itself.", []call{
		{"get_openapi", "getOpenAPI"},
	}, false},
}

// byHand are operations that are called by hand-written code, or not at all.
var byHand = map[string]string{
	"pollDevice":          "pollDeviceByBody keeps the code out of URLs",
	"createWebToken":      "reads the cookie of a browser's session",
	"exportMe":            "streams an archive to a file",
	"createGeneration":    "finds the tool's hash and sends files",
	"previewCost":         "finds the tool's hash",
	"createUpload":        "streams a file",
	"getMedia":            "signed URLs lead there; downloads check what they get",
	"getMediaWithoutName": "signed URLs lead there; downloads check what they get",
}

// repeatable are operations that change nothing more when they are repeated,
// though their method does not say so.
var repeatable = []string{
	"startDevice",
	"refreshToken",
	"revokeDevice",
	"signOutEverywhere",
	"previewCost",
	"cancelGeneration",
	"cancelOperatorRun",
	"restoreLibraryItem",
	"restoreBoard",
	"checkFlow",
	"draftFlow",
	"verifyDomain",
	"changeCompany",
	"renameTeam",
	"createUpload", // a second copy of a file costs no tokens
}

// isMedia reports whether the operation reads the bytes of a file, at a signed
// URL that the service names.
func isMedia(o operation) bool { return strings.HasPrefix(o.Path, "/media/") }

// isResumable reports whether the operation belongs to resumable uploads, whose
// protocol (tus) the libraries speak by hand.
func isResumable(o operation) bool {
	return strings.HasPrefix(o.Path, "/uploads/resumable")
}

// checkResources fails for an operation without a place, or with two.
func checkResources(all []operation) error {
	seen := map[string]bool{}
	for _, r := range resources {
		for _, c := range r.calls {
			if seen[c.operation] {
				return fmt.Errorf("operation %s has two places in resources.go", c.operation)
			}
			seen[c.operation] = true
			if !slices.ContainsFunc(all, func(o operation) bool { return o.ID == c.operation }) {
				return fmt.Errorf("resources.go: there is no operation %s", c.operation)
			}
		}
	}
	for _, o := range all {
		if !seen[o.ID] && byHand[o.ID] == "" && !isResumable(o) {
			return fmt.Errorf("operation %s has no place in resources.go", o.ID)
		}
	}
	return nil
}

// isRepeatable reports whether the operation may be sent again after its
// response was lost.
func isRepeatable(o operation) bool {
	switch o.Method {
	case "GET", "HEAD", "PUT", "DELETE":
		return true
	}
	return o.has("Idempotency-Key") || slices.Contains(repeatable, o.ID)
}
