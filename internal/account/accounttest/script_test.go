package accounttest_test

import (
	"crypto/sha256"
	"encoding/hex"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"atelier/internal/account"
	"atelier/internal/account/accounttest"
	"atelier/internal/account/devicelogin"
	"atelier/internal/account/signin"
	"atelier/internal/account/signup"
	"atelier/internal/base/audit"
	"atelier/internal/base/sqldb"
	"atelier/internal/notify/webhook"
	"atelier/internal/people/company"
	"atelier/internal/people/device"
	"atelier/internal/people/principal"
)

// script is the life of an installation in which everything happens once.
type script struct {
	*fixture
	secrets map[string]string // what must never be kept, by what it is
	acts    []audit.Act       // that should be in the log
}

// step does something, which must be recorded as these acts and no others.
func (s *script) step(name string, do func(), acts ...audit.Act) {
	s.Helper()
	mark := s.mark()
	do()
	s.recorded(name, mark, acts...)
	s.acts = append(s.acts, acts...)
}

// keep notes a secret.
func (s *script) keep(what, secret string) string {
	s.Helper()
	if len(secret) < 8 {
		s.Fatalf("%s is no secret: %q", what, secret)
	}
	s.secrets[what] = secret
	return secret
}

func (s *script) keepCodes(what string, codes device.Codes) device.Codes {
	s.Helper()
	s.keep("the device code of "+what, codes.DeviceCode)
	s.keep("the user code of "+what, codes.UserCode)
	s.keep("the letters of the user code of "+what, strings.ReplaceAll(codes.UserCode, "-", ""))
	return codes
}

func (s *script) keepTokens(what string, t devicelogin.Tokens) {
	s.Helper()
	s.keep("the refresh token of "+what, t.Refresh)
	s.keep("the ID token of "+what, t.ID)
	s.keep("the signature of the ID token of "+what, t.ID[strings.LastIndexByte(t.ID, '.')+1:])
}

// device signs a device in.
func (s *script) device(what string, in signin.Session) (device.Codes, devicelogin.Login) {
	s.Helper()
	codes := s.keepCodes(what, s.Start("blender"))
	var got devicelogin.Login
	s.step("sign in "+what, func() {
		s.ok(s.Decide(in, codes, true))
		var err error
		got, err = s.poll(codes)
		s.ok(err)
	}, audit.DeviceApproved, audit.DeviceSignedIn)
	s.keepTokens(what, got.Tokens)
	s.keep("the link that drops "+what, s.secret(in.Person.Email, "A new device"))
	return codes, got
}

// play runs the script.
func (w *fixture) play() *script {
	w.Helper()
	s := &script{fixture: w, secrets: map[string]string{}}
	ctx := w.Context()
	enter := func(what string, in signin.NewSession, err error) signin.Session {
		w.Helper()
		w.ok(err)
		found, err := w.Accounts.SignIn.FindSession(ctx, s.keep("the cookie of "+what, in.Cookie), "")
		w.ok(err)
		return found
	}
	signIn := func(what, email, password string) (in signin.Session) {
		w.Helper()
		s.step(what, func() {
			got, err := w.Accounts.SignIn.SignIn(ctx, email, password, w.Client())
			in = enter(what, got, err)
		}, audit.SessionSignedIn)
		return in
	}

	// People come.
	var anna signin.Session
	setup := s.keep("the set-up token", w.offerSetup())
	s.step("set up", func() {
		in, err := w.signUp(signup.Application{Email: "anna@example.com", Password: s.keep("her password", "anna's first password"), Setup: setup})
		anna = enter("the set-up", in, err)
	}, audit.PersonCreated, audit.SessionSignedIn)
	s.step("make a company", func() {
		c := w.Company("Studio", company.TeamPlan)
		w.Admit(c, "anna@example.com", company.CompanyPermissions...)
		w.own(c, "studio.example", "")
	}, audit.CompanyCreated, audit.CompanyMemberSet, audit.DomainAdded, audit.DomainVerified)
	var c string
	w.ok(w.DB.QueryRow(ctx, `SELECT id FROM company`).Scan(&c))
	s.step("sign up", func() {
		in, err := w.signUp(signup.Application{Email: "bert@studio.example", Password: s.keep("his password", "bert's first password")})
		enter("his sign-up", in, err)
	}, audit.PersonCreated, audit.SessionSignedIn)
	s.step("verify", func() {
		w.ok(w.Accounts.Verification.VerifyEmail(ctx, s.keep("the verification link", w.secret("bert@studio.example", "Verify")), w.Client()))
	}, audit.CompanyMemberSet, audit.PersonVerified)
	s.step("wrong password", func() {
		_ = w.signIn("bert@studio.example", s.keep("a wrong password", "nobody's password"))
	}, audit.SessionSignInFailed)
	signIn("his sign-in", "bert@studio.example", "bert's first password")
	s.step("ask for a reset", func() {
		w.ok(w.Accounts.SignIn.RequestPasswordReset(ctx, "bert@studio.example", w.Client()))
	}, audit.PersonResetRequested)
	s.step("reset", func() {
		link := s.keep("the reset link", w.secret("bert@studio.example", "Choose"))
		w.ok(second(w.Accounts.SignIn.ResetPassword(ctx, link, s.keep("his second password", "bert's second password"), w.Client())))
	}, audit.PersonPasswordChanged)
	s.step("a link of the operator", func() {
		link, err := w.Accounts.SignIn.OperatorResetLink(ctx, "bert@studio.example")
		w.ok(err)
		s.keep("the operator's link", secretIn(link))
	}, audit.PersonResetRequested)
	bert := signIn("his second sign-in", "bert@studio.example", "bert's second password")
	s.step("change the password", func() {
		in, err := w.Accounts.SignIn.ChangePassword(ctx, bert, "bert's second password", s.keep("his third password", "bert's third password"), w.Client())
		bert = enter("his change", in, err)
	}, audit.PersonPasswordChanged, audit.SessionSignedIn)
	other := signIn("his other browser", "bert@studio.example", "bert's third password")
	s.step("sign out", func() { w.ok(w.Accounts.SignIn.SignOut(ctx, principal.Principal{PersonID: bert.PersonID}, other.ID)) }, audit.SessionSignedOut)

	// Devices come and go.
	s.step("refuse", func() { w.ok(w.Decide(bert, s.keepCodes("a refused device", w.Start("")), false)) }, audit.DeviceRefused)
	codes := s.keepCodes("a code that was sent around", w.Start(""))
	s.step("look", func() { w.ok(second(w.open(bert, codes.UserCode))) })
	s.step("look at another's", func() { w.ok(second(w.open(anna, codes.UserCode))) }, audit.DeviceCodeSeenByMany)
	codes = s.keepCodes("a code that dies", w.Start(""))
	s.step("confirm wrongly", func() {
		g, err := w.open(bert, codes.UserCode)
		w.ok(err)
		for range 5 {
			_ = w.decide(bert, g.ID, "BBBB-BBBB", true)
		}
	}, audit.DeviceCodeKilled)
	codes, _ = s.device("a device whose code leaks", bert)
	w.pass(15 * time.Second)
	s.step("replay", func() { _ = second(w.poll(codes)) }, audit.DeviceCodeReplayed)
	_, leaky := s.device("a device whose refresh token leaks", bert)
	_, kept := s.device("a device that stays", bert)
	w.pass(24*time.Hour - time.Minute)
	s.step("refresh too early to replace it", func() { w.ok(second(w.refresh(leaky.Tokens.Refresh))) })
	w.pass(time.Minute)
	s.step("refresh", func() {
		for what, dev := range map[string]devicelogin.Login{"the leaky device, later": leaky, "the device that stays, later": kept} {
			got, err := w.refresh(dev.Tokens.Refresh)
			w.ok(err)
			s.keepTokens(what, got)
		}
	})
	w.pass(2 * time.Minute)
	s.step("reuse", func() { _ = second(w.refresh(leaky.Tokens.Refresh)) }, audit.RefreshReused)
	bert = signIn("his third sign-in", "bert@studio.example", "bert's third password")
	_, lost := s.device("a lost device", bert)
	s.step("revoke", func() {
		w.ok(w.Accounts.Devices.RevokeDevice(ctx, principal.Principal{PersonID: bert.PersonID}, bert.PersonID, lost.DeviceID))
	}, audit.DeviceRevoked)
	s.device("a dropped device", bert)
	s.step("drop", func() {
		w.ok(w.Accounts.Devices.EndDeviceByLink(ctx, s.secrets["the link that drops a dropped device"], w.Client()))
	}, audit.DeviceRevoked)

	// Access tokens.
	var id, value string
	s.step("make a token", func() { id, value = w.Token("bert@studio.example", ""); s.keep("a personal token", value) }, audit.TokenCreated)
	s.step("use it", func() { w.admits(value); w.admits(value) }, audit.TokenFirstUsed)
	s.step("regenerate it", func() {
		_, value, err := w.Accounts.AccessTokens.RegenerateAccessToken(ctx, principal.Principal{PersonID: bert.PersonID}, id)
		w.ok(err)
		s.keep("its new value", value)
	}, audit.TokenRegenerated)
	s.step("delete it", func() {
		w.ok(w.Accounts.AccessTokens.DeleteAccessToken(ctx, principal.Principal{PersonID: bert.PersonID}, id))
	}, audit.TokenDeleted)
	s.step("a company token", func() {
		t, value, err := w.Accounts.AccessTokens.CreateCompanyToken(ctx, principal.Principal{PersonID: anna.PersonID}, c, bert.PersonID, "farm")
		w.ok(err)
		s.keep("a company token", value)
		_, value, err = w.Accounts.AccessTokens.RegenerateCompanyToken(ctx, principal.Principal{PersonID: anna.PersonID}, c, t.ID)
		w.ok(err)
		s.keep("its other value", value)
		_, err = w.Accounts.AccessTokens.DeleteTokenValue(ctx, value)
		w.ok(err)
	}, audit.TokenCreated, audit.TokenRegenerated, audit.TokenDeleted)

	// What else there is.
	var secret string
	s.step("invite", func() { secret = s.keep("an invitation", w.invite("", c, w.Team(c, "Film", "member"))) }, audit.TeamCreated, audit.InvitationCreated)
	s.step("accept", func() {
		w.ok(w.Accounts.SignUp.AcceptInvitation(ctx, principal.Principal{PersonID: bert.PersonID}, secret))
	}, audit.InvitationAccepted)
	s.step("invite by mail", func() { s.keep("an invitation by mail", w.invite("carl@example.com", c, "")) }, audit.InvitationCreated)
	s.step("limit storage", func() {
		limit := int64(1 << 20)
		w.ok(second(w.Accounts.Settings.Storage.SetLimitByOperator(ctx, w.DB, "bert@studio.example", "", &limit)))
	}, audit.StorageLimitSet)
	s.step("grant", func() { w.ok(second(w.Accounts.Grants.GrantByOperator(ctx, "bert@studio.example", "", 5, ""))) }, audit.TokensGranted)
	s.step("top up", func() {
		for range 2 {
			_, _, _ = w.Accounts.Grants.ClaimTopUp(ctx, principal.Principal{PersonID: bert.PersonID})
		}
	}, audit.TokensToppedUp)
	s.step("webhook secret", func() {
		secrets, by := webhook.NewSecrets(w.Keys.BoxFor("webhook"), time.Hour), principal.Principal{PersonID: bert.PersonID, AccountID: bert.PersonID}
		for range 2 {
			made, err := secrets.GetFor(ctx, w.DB, by)
			w.ok(err)
			s.keep("a webhook secret", made.Value)
		}
		next, err := secrets.RotateFor(ctx, w.DB, by)
		w.ok(err)
		s.keep("another webhook secret", next.Value)
	}, audit.WebhookSecretMade, audit.WebhookSecretRotated)
	s.step("rotate keys", func() { w.ok(second(w.Accounts.Devices.RotateKeys(ctx))) }, audit.KeysRotated)
	s.keepCodes("what is never fetched", w.Start(""))
	s.step("sign out everywhere", func() {
		w.ok(w.Accounts.SignIn.SignOutEverywhere(ctx, principal.Principal{PersonID: bert.PersonID}, bert.PersonID))
	}, audit.SessionSignedOutEverywhere)
	s.step("suspend and restore", func() {
		for _, on := range []bool{true, false} {
			w.ok(w.Accounts.SignIn.SetSuspended(ctx, "bert@studio.example", on))
		}
	}, audit.PersonSuspended, audit.PersonRestored)
	return s
}

var everything = accounttest.Options{Settings: account.Settings{SignupGrant: 10, TopUp: 5}}

func TestEveryActIsRecordedOnce(t *testing.T) {
	each(t, everything, func(w *fixture) {
		s := w.play()
		w.recorded("the whole", 0, s.acts...)
		all := w.records(0)
		for i, r := range all {
			if r.Seq != int64(i+1) || i > 0 && r.At.Before(all[i-1].At) {
				w.Errorf("record %d = %+v, which is out of order", i, r)
			}
		}
		middle := all[len(all)/2]
		head, bad, err := audit.Verify(w.Context(), w.DB, &audit.Head{Seq: middle.Seq, Hash: middle.Hash})
		if err != nil || len(bad) != 0 || head.Seq != int64(len(s.acts)) {
			w.Errorf("verify = %+v, %q, %v", head, bad, err)
		}
		// What a provider or a company's directory does is in the tests of that, and so are the end of a person, the
		// first start with seals, backups, and runs that an operator cancels.
		elsewhere := []audit.Act{audit.SealsBegun, audit.BackupMade, audit.BackupRestored, audit.InstallationMoved, audit.IdentityLinked, audit.IdentityLost, audit.PersonEmailChanged, audit.PersonExported, audit.PersonDeleted, audit.RunCancelled}
		for _, act := range audit.Acts {
			ours := !slices.ContainsFunc([]string{"company.", "team.", "budget.", "domain.", "invitation.", "scim_"}, func(p string) bool { return strings.HasPrefix(string(act), p) })
			if ours && !slices.Contains(elsewhere, act) && !slices.Contains(s.acts, act) {
				w.Errorf("the script has no %s", act)
			}
		}
	})
}

// dump is all that the database has on its disk, or in its tables.
func (w *fixture) dump() string {
	w.Helper()
	if path, ok := strings.CutPrefix(w.address, "sqlite://"); ok {
		file, err := os.ReadFile(path)
		w.ok(err)
		log, err := os.ReadFile(path + "-wal")
		w.ok(err)
		return string(file) + string(log)
	}
	var all strings.Builder
	w.do(func(tx *sqldb.Tx) error {
		all.Reset()
		text := func(row sqldb.Scanner) (s string, err error) { return s, row.Scan(&s) }
		tables, err := sqldb.All(w.Context(), tx, `SELECT CAST(tablename AS TEXT) FROM pg_tables WHERE schemaname = current_schema()`, nil, text)
		if err != nil {
			return err
		}
		for _, table := range tables {
			rows, err := sqldb.All(w.Context(), tx, `SELECT CAST(t AS TEXT) FROM `+table+` t`, nil, text)
			if err != nil {
				return err
			}
			all.WriteString(strings.Join(rows, "\n"))
		}
		return nil
	})
	return all.String()
}

// What proves who somebody is exists in the one answer that gives it.
func TestSecretsAreKeptNowhere(t *testing.T) {
	each(t, everything, func(w *fixture) {
		s := w.play()
		dump := w.dump()
		for what, secret := range s.secrets {
			if strings.Contains(dump, secret) {
				w.Errorf("the database has %s", what)
			}
		}
		sum := sha256.Sum256([]byte(s.secrets["the refresh token of a device that stays"]))
		for _, there := range []string{"bert@studio.example", hex.EncodeToString(sum[:])} { // the search finds what is there
			if !strings.Contains(dump, there) {
				w.Errorf("the dump lacks %s", there)
			}
		}
		if len(s.secrets) < 60 {
			w.Errorf("%d secrets were looked for", len(s.secrets))
		}
	})
}
