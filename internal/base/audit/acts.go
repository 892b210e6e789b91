package audit

import "strings"

// Act names an action. Names are stored forever: add, never rename.
type Act string

// The acts by subject.
const (
	PersonCreated         Act = "person.created"          // a person signed up or was created by an operator
	PersonVerified        Act = "person.verified"         // their address is theirs
	PersonSuspended       Act = "person.suspended"        // they are shut out
	PersonRestored        Act = "person.restored"         // and in again
	PersonPasswordChanged Act = "person.password_changed" // by themselves, or with a reset link
	PersonResetRequested  Act = "person.reset_requested"  // a reset link was requested
	PersonEmailChanged    Act = "person.email_changed"    // they have another address
	PersonExported        Act = "person.exported"         // the archive of their personal data was downloaded
	PersonDeleted         Act = "person.deleted"          // they are no more

	SessionSignedIn            Act = "session.signed_in"             // a browser is signed in
	SessionSignInFailed        Act = "session.sign_in_failed"        // a wrong password, or a suspended person
	SessionSignedOut           Act = "session.signed_out"            // one browser
	SessionSignedOutEverywhere Act = "session.signed_out_everywhere" // every browser and device

	DeviceApproved       Act = "device.approved"          // a person approved a device
	DeviceRefused        Act = "device.refused"           // a person turned it away
	DeviceSignedIn       Act = "device.signed_in"         // it fetched its tokens
	DeviceRevoked        Act = "device.revoked"           // it is signed out for good
	DeviceCodeSeenByMany Act = "device.code_seen_by_many" // a second person opened a code: it was passed on
	DeviceCodeKilled     Act = "device.code_killed"       // too many wrong confirmations
	DeviceCodeReplayed   Act = "device.code_replayed"     // a code that was used up came again
	RefreshReused        Act = "refresh.reused"           // a replaced refresh token came again: two have it

	TokenCreated     Act = "token.created"     // an access token was made
	TokenFirstUsed   Act = "token.first_used"  // and used for the first time
	TokenRegenerated Act = "token.regenerated" // the old secret is dead
	TokenDeleted     Act = "token.deleted"     // the token is dead

	CompanyCreated       Act = "company.created"
	CompanyChanged       Act = "company.changed"        // its name, time zone or plan
	CompanyMemberSet     Act = "company.member_set"     // a member joined or has another role
	CompanyMemberRemoved Act = "company.member_removed" // a member left or was removed
	CompanyRoleSet       Act = "company.role_set"       // a role was made or changed
	CompanyRoleDeleted   Act = "company.role_deleted"

	TeamCreated       Act = "team.created"
	TeamChanged       Act = "team.changed" // its name
	TeamRemoved       Act = "team.removed"
	TeamMemberSet     Act = "team.member_set"     // a member joined or has another role
	TeamMemberRemoved Act = "team.member_removed" // a member left or was removed
	TeamRoleSet       Act = "team.role_set"       // a role was made or changed
	TeamRoleDeleted   Act = "team.role_deleted"

	InvitationCreated  Act = "invitation.created"  // a link was made
	InvitationAccepted Act = "invitation.accepted" // a person joined with it
	InvitationRevoked  Act = "invitation.revoked"  // it works no more

	DomainAdded    Act = "domain.added"    // a company claims a mail domain
	DomainVerified Act = "domain.verified" // DNS proved it: its people join by themselves
	DomainRemoved  Act = "domain.removed"

	ScimConnected    Act = "scim_token.made"    // a company's directory is connected; a token from before is dead
	ScimDisconnected Act = "scim_token.deleted" // and cut off
	ScimUserMade     Act = "scim_user.made"     // SCIM provisioned a user
	ScimUserChanged  Act = "scim_user.changed"  // SCIM changed a user's attributes
	ScimUserDeleted  Act = "scim_user.deleted"  // it no longer knows them

	TokensGranted  Act = "tokens.granted"   // by the operator, or taken back
	TokensToppedUp Act = "tokens.topped_up" // a person claimed the free top-up

	WebhookSecretMade    Act = "webhook_secret.made"    // events of an account are signed from now on
	WebhookSecretRotated Act = "webhook_secret.rotated" // with another secret

	BudgetSet     Act = "budget.set"     // the budget of a team was set
	BudgetRemoved Act = "budget.removed" // it plans nothing any more

	StorageLimitSet Act = "storage.limit_set" // how much an account may store, by the operator

	KeysRotated Act = "keys.rotated" // another key signs
	SealsBegun  Act = "seals.begun"  // rows from before seals were introduced were sealed

	BackupMade     Act = "backup.made"     // a copy of the whole installation was made
	BackupRestored Act = "backup.restored" // from here on it goes on from a copy

	IdentityLinked Act = "identity.linked" // a person is known at a provider
	IdentityLost   Act = "identity.lost"   // the provider no longer confirms the identity
)

// Acts lists every act; Add refuses any other.
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
	WebhookSecretMade, WebhookSecretRotated,
	BudgetSet, BudgetRemoved,
	StorageLimitSet,
	KeysRotated, SealsBegun,
	BackupMade, BackupRestored,
	IdentityLinked, IdentityLost,
}

// Changes are the acts that change a value: a role or limit, a member's role, a
// budget, a balance, a setting. Their entries have the details
// from and to, made by Entry.Changing; Add refuses one without.
var Changes = []Act{
	PersonEmailChanged, PersonSuspended, PersonRestored,
	CompanyChanged, CompanyMemberSet, CompanyMemberRemoved, CompanyRoleSet, CompanyRoleDeleted,
	TeamChanged, TeamMemberSet, TeamMemberRemoved, TeamRoleSet, TeamRoleDeleted,
	InvitationAccepted,
	ScimUserChanged,
	TokensGranted, TokensToppedUp,
	BudgetSet, BudgetRemoved,
}

// Named returns the acts that a text names: one by its name, or all of a kind by
// what comes before the dot. There are none where nothing is called so.
func Named(text string) (acts []Act) {
	for _, a := range Acts {
		if kind, _, _ := strings.Cut(string(a), "."); text == string(a) || text == kind {
			acts = append(acts, a)
		}
	}
	return acts
}
