package audit

import "strings"

// Act names an audited action. Names are stored permanently: new ones may be
// added, existing ones are never renamed.
type Act string

// The audited actions, grouped by subject.
const (
	PersonCreated         Act = "person.created"          // a person signed up or was created by an operator
	PersonVerified        Act = "person.verified"         // a person's e-mail address was verified
	PersonSuspended       Act = "person.suspended"        // a person may no longer sign in
	PersonRestored        Act = "person.restored"         // a suspended person may sign in again
	PersonPasswordChanged Act = "person.password_changed" // the password was changed by the signed-in person or with a reset link
	PersonResetRequested  Act = "person.reset_requested"  // a link to reset the password was requested
	PersonEmailChanged    Act = "person.email_changed"    // a person changed their e-mail address
	PersonExported        Act = "person.exported"         // the archive of a person's data was downloaded
	PersonDeleted         Act = "person.deleted"          // a person was deleted

	SessionSignedIn            Act = "session.signed_in"             // a browser signed in
	SessionSignInFailed        Act = "session.sign_in_failed"        // the password was wrong, or the person is suspended
	SessionSignedOut           Act = "session.signed_out"            // one browser signed out
	SessionSignedOutEverywhere Act = "session.signed_out_everywhere" // every browser and device signed out

	DeviceApproved       Act = "device.approved"          // a person approved a device
	DeviceRefused        Act = "device.refused"           // a person refused a device
	DeviceSignedIn       Act = "device.signed_in"         // a device fetched its tokens
	DeviceRevoked        Act = "device.revoked"           // a device was signed out permanently
	DeviceCodeSeenByMany Act = "device.code_seen_by_many" // a second person opened a device code, so the code was passed on
	DeviceCodeKilled     Act = "device.code_killed"       // a device code was invalidated after too many wrong confirmations
	DeviceCodeReplayed   Act = "device.code_replayed"     // a used device code was presented again
	RefreshReused        Act = "refresh.reused"           // a replaced refresh token was presented again, so two clients have the token

	TokenCreated     Act = "token.created"     // an access token was created
	TokenFirstUsed   Act = "token.first_used"  // an access token was used for the first time
	TokenRegenerated Act = "token.regenerated" // an access token got a new secret; the old secret is invalid
	TokenDeleted     Act = "token.deleted"     // an access token was deleted

	CompanyCreated       Act = "company.created"
	CompanyChanged       Act = "company.changed"        // a company's name, time zone or plan changed
	CompanyMemberSet     Act = "company.member_set"     // a member joined the company or got another role
	CompanyMemberRemoved Act = "company.member_removed" // a member left the company or was removed from it
	CompanyRoleSet       Act = "company.role_set"       // a role of the company was created or changed
	CompanyRoleDeleted   Act = "company.role_deleted"

	TeamCreated       Act = "team.created"
	TeamChanged       Act = "team.changed" // a team's name changed
	TeamRemoved       Act = "team.removed"
	TeamMemberSet     Act = "team.member_set"     // a member joined the team or got another role
	TeamMemberRemoved Act = "team.member_removed" // a member left the team or was removed from it
	TeamRoleSet       Act = "team.role_set"       // a role of the team was created or changed
	TeamRoleDeleted   Act = "team.role_deleted"

	InvitationCreated  Act = "invitation.created"  // an invitation link was created
	InvitationAccepted Act = "invitation.accepted" // a person joined with an invitation
	InvitationRevoked  Act = "invitation.revoked"  // an invitation was revoked

	DomainAdded    Act = "domain.added"    // a company claimed a mail domain
	DomainVerified Act = "domain.verified" // DNS records proved the claim; people of the domain join automatically
	DomainRemoved  Act = "domain.removed"

	ScimConnected    Act = "scim_token.made"    // a company's directory was connected by SCIM; an earlier token is invalid
	ScimDisconnected Act = "scim_token.deleted" // a company's directory was disconnected
	ScimUserMade     Act = "scim_user.made"     // SCIM provisioned a user
	ScimUserChanged  Act = "scim_user.changed"  // SCIM changed a user's attributes
	ScimUserDeleted  Act = "scim_user.deleted"  // SCIM deleted a user

	TokensGranted  Act = "tokens.granted"   // the operator granted or withdrew tokens
	TokensToppedUp Act = "tokens.topped_up" // a person claimed the free top-up

	RunCancelled Act = "run.cancelled" // an operator cancelled a run of somebody

	WebhookSecretMade    Act = "webhook_secret.made"    // an account got a secret for signing its webhook events
	WebhookSecretRotated Act = "webhook_secret.rotated" // the secret that signs webhook events was replaced

	BudgetSet     Act = "budget.set"     // the budget of a team was set
	BudgetRemoved Act = "budget.removed" // the budget of a team was removed

	StorageLimitSet Act = "storage.limit_set" // the operator set how many bytes an account may store

	KeysRotated Act = "keys.rotated" // the key that signs ID tokens was replaced
	SealsBegun  Act = "seals.begun"  // seals (keyed hashes) were added to rows that were stored before seals existed

	BackupMade     Act = "backup.made"     // a backup of the whole installation was made
	BackupRestored Act = "backup.restored" // the installation was restored from a backup

	InstallationMoved Act = "installation.moved" // the database was copied from another one by atelier move

	IdentityLinked Act = "identity.linked" // a person was linked to an identity at an OpenID provider
	IdentityLost   Act = "identity.lost"   // the OpenID provider no longer confirms the identity
)

// Acts lists every action. Add returns an error for any other action.
var Acts = []Act{
	PersonCreated, PersonVerified, PersonSuspended, PersonRestored, PersonPasswordChanged, PersonResetRequested, PersonEmailChanged,
	PersonExported, PersonDeleted,
	SessionSignedIn, SessionSignInFailed, SessionSignedOut, SessionSignedOutEverywhere,
	DeviceApproved, DeviceRefused, DeviceSignedIn, DeviceRevoked, DeviceCodeSeenByMany, DeviceCodeKilled, DeviceCodeReplayed, RefreshReused,
	TokenCreated, TokenFirstUsed, TokenRegenerated, TokenDeleted,
	CompanyCreated, CompanyChanged, CompanyMemberSet, CompanyMemberRemoved, CompanyRoleSet, CompanyRoleDeleted,
	TeamCreated, TeamChanged, TeamRemoved, TeamMemberSet, TeamMemberRemoved, TeamRoleSet, TeamRoleDeleted,
	InvitationCreated, InvitationAccepted, InvitationRevoked,
	DomainAdded, DomainVerified, DomainRemoved,
	ScimConnected, ScimDisconnected, ScimUserMade, ScimUserChanged, ScimUserDeleted,
	TokensGranted, TokensToppedUp,
	RunCancelled,
	WebhookSecretMade, WebhookSecretRotated,
	BudgetSet, BudgetRemoved,
	StorageLimitSet,
	KeysRotated, SealsBegun,
	BackupMade, BackupRestored, InstallationMoved,
	IdentityLinked, IdentityLost,
}

// Changes are the actions that change a value: a role or limit, a member's
// role, a budget, a balance, a setting. Their log entries need the details
// "from" and "to", which Entry.WithChange sets; Add returns an error for an
// entry without them.
var Changes = []Act{
	PersonEmailChanged, PersonSuspended, PersonRestored,
	CompanyChanged, CompanyMemberSet, CompanyMemberRemoved, CompanyRoleSet, CompanyRoleDeleted,
	TeamChanged, TeamMemberSet, TeamMemberRemoved, TeamRoleSet, TeamRoleDeleted,
	InvitationAccepted,
	ScimUserChanged,
	TokensGranted, TokensToppedUp,
	BudgetSet, BudgetRemoved,
}

// Named returns the actions that match text: one action if text is its full
// name (such as "team.created"), or all actions whose name begins with text and
// a dot. It returns none for an unknown name.
func Named(text string) (acts []Act) {
	for _, a := range Acts {
		if kind, _, _ := strings.Cut(string(a), "."); text == string(a) || text == kind {
			acts = append(acts, a)
		}
	}
	return acts
}
