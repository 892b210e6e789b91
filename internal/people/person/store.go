package person

import (
	"context"
	"errors"
	"time"

	"atelier/internal/base/fault"
	"atelier/internal/base/sqldb"
)

// insertPerson adds a person unless another person has the same e-mail address.
func insertPerson(ctx context.Context, tx *sqldb.Tx, p Person, hash string) (fresh bool, err error) {
	n, err := execSealed(ctx, tx, p.ID, `
		INSERT INTO person (id, email, email_key, email_verified, password_hash, created)
		VALUES ($1, $2, $3, $4, $5, $6)
		ON CONFLICT (email_key) DO NOTHING`,
		p.ID, p.Email, emailKey(p.Email), p.EmailVerified, hash, sqldb.At(p.Created))
	return n == 1, err
}

const personQuery = `
	SELECT p.id, p.email, p.email_verified, p.suspended, p.deleted IS NOT NULL, p.created, p.signed_in_before,
		CASE WHEN p.password_hash <> '' THEN '` + Password + `' ELSE coalesce(
			(SELECT i.provider FROM person_identity i WHERE i.person_id = p.id ORDER BY i.created DESC, i.issuer LIMIT 1), '` + Password + `') END
	FROM person p WHERE `

func scanPerson(row sqldb.Scanner) (p Person, err error) {
	var created, before sqldb.Time
	err = row.Scan(&p.ID, &p.Email, &p.EmailVerified, &p.Suspended, &p.Deleted, &created, &before, &p.Provider)
	p.Created = created.Time
	p.SignedInBefore = before.Time
	return p, err
}

// findPerson returns the person who has the given value in a unique column.
func findPerson(ctx context.Context, tx *sqldb.Tx, column, value string) (Person, error) {
	p, err := scanPerson(tx.QueryRow(ctx, personQuery+`p.`+column+` = $1`, value))
	if errors.Is(err, sqldb.ErrNoRows) {
		return Person{}, errNobody
	}
	return p, err
}

func listPeople(ctx context.Context, tx *sqldb.Tx, text, afterKey string, limit int) ([]Person, error) {
	var args sqldb.Args
	where := `p.deleted IS NULL AND p.email_key > ` + args.Add(afterKey)
	if text != "" {
		where += ` AND p.email_key LIKE ` + args.Add(sqldb.ContainsPattern(text)) + ` ESCAPE '!'`
	}
	return sqldb.All(ctx, tx, personQuery+where+` ORDER BY p.email_key LIMIT `+args.Add(limit), args, scanPerson)
}

// Emails returns the e-mail addresses of people by their ids. Deleted people
// are left out. There must be at least one id.
func Emails(ctx context.Context, tx *sqldb.Tx, personIDs []string) (map[string]string, error) {
	in, args := sqldb.In(personIDs)
	return sqldb.Map[string, string](ctx, tx, `SELECT id, email FROM person WHERE deleted IS NULL AND id IN `+in, args)
}

// Lock locks a person's row until tx ends, so that transactions that sign the
// person in and transactions that sign them out everywhere run one after the
// other. It returns ErrDeleted for a deleted person, so that nothing new is
// created for them.
func Lock(ctx context.Context, tx *sqldb.Tx, id string) error {
	return checkLocked(tx.QueryRow(ctx, lockQuery+tx.Dialect.ForUpdate, id))
}

// DeferLock is like Lock, but the row is locked together with the next statement
// of tx (see sqldb.Tx.DeferQueryRow).
func DeferLock(ctx context.Context, tx *sqldb.Tx, id string) error {
	return tx.DeferQueryRow(ctx, lockQuery+tx.Dialect.ForUpdate, []any{id}, checkLocked)
}

const lockQuery = `SELECT deleted IS NOT NULL FROM person WHERE id = $1`

// checkLocked reads the row of lockQuery.
func checkLocked(row sqldb.Row) error {
	var deleted bool
	err := row.Scan(&deleted)
	if errors.Is(err, sqldb.ErrNoRows) {
		return errNobody
	}
	if err == nil && deleted {
		err = ErrDeleted
	}
	return err
}

// ListIDs returns the ids of at most limit people who are not deleted, in
// ascending order, starting after the given id; "" starts at the beginning.
func ListIDs(ctx context.Context, tx *sqldb.Tx, after string, limit int) ([]string, error) {
	return sqldb.All(ctx, tx, `SELECT id FROM person WHERE id > $1 AND deleted IS NULL ORDER BY id LIMIT $2`, []any{after, int64(limit)},
		func(row sqldb.Scanner) (id string, err error) { return id, row.Scan(&id) })
}

// erased is the prefix of the column email_key of a deleted person. No mail
// address begins with it.
const erased = "deleted:"

// Erase deletes the data of a person whose row the caller has locked. The row
// remains, with little more than its id, because other tables refer to it. The
// e-mail address becomes available to other people.
func Erase(ctx context.Context, tx *sqldb.Tx, id string) error {
	for _, query := range []string{
		`DELETE FROM person_identity WHERE person_id = $1`,
		`DELETE FROM person_link WHERE person_id = $1`,
		`DELETE FROM person_notice WHERE person_id = $1`,
	} {
		if _, err := tx.Exec(ctx, query, id); err != nil {
			return err
		}
	}
	_, err := execSealed(ctx, tx, id, `
		UPDATE person SET email = '', email_key = $2, email_verified = FALSE, password_hash = '', suspended = TRUE, signed_in = 0, signed_in_before = 0, deleted = $3
		WHERE id = $1 AND deleted IS NULL`, id, erased+id, sqldb.At(tx.Now))
	return err
}

// passwordOf returns the id and the password hash of the person whose mail
// address has the given lower-case form. Both are empty if there is no such
// person.
func passwordOf(ctx context.Context, db *sqldb.DB, key string) (id, hash string, err error) {
	err = db.QueryRow(ctx, `SELECT id, password_hash FROM person WHERE email_key = $1`, key).Scan(&id, &hash)
	if errors.Is(err, sqldb.ErrNoRows) {
		err = nil
	}
	return id, hash, err
}

func hasPassword(ctx context.Context, tx *sqldb.Tx, id, hash string) (has bool, err error) {
	err = tx.QueryRow(ctx, `SELECT EXISTS (SELECT 1 FROM person WHERE id = $1 AND password_hash = $2)`, id, hash).Scan(&has)
	return has, err
}

func setVerified(ctx context.Context, tx *sqldb.Tx, id, key string) (bool, error) {
	n, err := execSealed(ctx, tx, id, `UPDATE person SET email_verified = TRUE WHERE id = $1 AND email_key = $2 AND NOT email_verified`, id, key)
	return n == 1, err
}

// setEmail changes a person's e-mail address. It returns ErrEmailTaken if another
// person has the new address.
func setEmail(ctx context.Context, tx *sqldb.Tx, id, email string) error {
	n, err := execSealed(ctx, tx, id, `
		UPDATE person SET email = $2, email_key = $3
		WHERE id = $1 AND NOT EXISTS (SELECT 1 FROM person o WHERE o.email_key = $3 AND o.id <> $1)`, id, email, emailKey(email))
	if sqldb.IsDuplicate(err) || err == nil && n == 0 {
		return ErrEmailTaken
	}
	return err
}

// SetPassword replaces a person's password hash; "" removes the password.
func SetPassword(ctx context.Context, tx *sqldb.Tx, id, hash string) error {
	_, err := execSealed(ctx, tx, id, `UPDATE person SET password_hash = $2 WHERE id = $1`, id, hash)
	return err
}

// SetSuspended suspends a person or reinstates them.
func SetSuspended(ctx context.Context, tx *sqldb.Tx, id string, suspended bool) error {
	_, err := execSealed(ctx, tx, id, `UPDATE person SET suspended = $2 WHERE id = $1`, id, suspended)
	return err
}

// RecordSignIn records the current time as the time of a person's most recent
// sign-in on a device. The time of the previous sign-in becomes SignedInBefore.
func RecordSignIn(ctx context.Context, tx *sqldb.Tx, id string) error {
	_, err := tx.Exec(ctx, `UPDATE person SET signed_in_before = signed_in, signed_in = $2 WHERE id = $1`, id, sqldb.At(tx.Now))
	return err
}

func hasPeople(ctx context.Context, tx *sqldb.Tx) (found bool, err error) {
	err = tx.QueryRow(ctx, `SELECT EXISTS (SELECT 1 FROM person)`).Scan(&found)
	return found, err
}

// setupRow is the prefix of the names under which the hashes of set-up tokens
// are stored in the table deployment.
const setupRow = "setup/"

func insertSetup(ctx context.Context, tx *sqldb.Tx, hash string) error {
	_, err := tx.Exec(ctx, `INSERT INTO deployment (name, value) VALUES ($1, '')`, setupRow+hash)
	return err
}

func hasSetup(ctx context.Context, tx *sqldb.Tx, hash string) (found bool, err error) {
	err = tx.QueryRow(ctx, `SELECT EXISTS (SELECT 1 FROM deployment WHERE name = $1)`, setupRow+hash).Scan(&found)
	return found, err
}

// lockSetups takes a lock until tx ends, so that transactions that create or
// delete set-up tokens run one after the other. Without the lock, a token that
// is created at the same time as the first person would stay valid.
func lockSetups(ctx context.Context, tx *sqldb.Tx) error {
	_, err := tx.Exec(ctx, `INSERT INTO deployment (name, value) VALUES ('setup', '') ON CONFLICT (name) DO UPDATE SET value = ''`)
	return err
}

// takeSetups deletes all set-up tokens and returns their hashes.
func takeSetups(ctx context.Context, tx *sqldb.Tx) ([]string, error) {
	if err := lockSetups(ctx, tx); err != nil {
		return nil, err
	}
	return sqldb.All(ctx, tx, `DELETE FROM deployment WHERE name LIKE '`+setupRow+`%' RETURNING substr(name, $1)`, []any{len(setupRow) + 1},
		func(row sqldb.Scanner) (hash string, err error) { return hash, row.Scan(&hash) })
}

// Queries for one-time links.

func insertLink(ctx context.Context, tx *sqldb.Tx, hash string, kind LinkKind, l Link, expires time.Time) error {
	_, err := tx.Exec(ctx, `
		INSERT INTO person_link (hash, kind, person_id, target, created, expires) VALUES ($1, $2, $3, $4, $5, $6)`,
		hash, kind, l.PersonID, l.Target, sqldb.At(tx.Now), sqldb.At(expires))
	return err
}

func deleteLinks(ctx context.Context, tx *sqldb.Tx, kind LinkKind, l Link) error {
	_, err := tx.Exec(ctx, `DELETE FROM person_link WHERE kind = $1 AND person_id = $2 AND target = $3`, kind, l.PersonID, l.Target)
	return err
}

// DeleteLinks deletes all links of the given kind that were sent to a person.
func DeleteLinks(ctx context.Context, tx *sqldb.Tx, kind LinkKind, personID string) error {
	_, err := tx.Exec(ctx, `DELETE FROM person_link WHERE kind = $1 AND person_id = $2`, kind, personID)
	return err
}

func findLink(ctx context.Context, tx *sqldb.Tx, kind LinkKind, hash string) (l Link, err error) {
	err = tx.QueryRow(ctx, `SELECT person_id, target FROM person_link WHERE hash = $1 AND kind = $2 AND expires > $3`,
		hash, kind, sqldb.At(tx.Now)).Scan(&l.PersonID, &l.Target)
	if errors.Is(err, sqldb.ErrNoRows) {
		return l, errLink
	}
	return l, err
}

func takeLink(ctx context.Context, tx *sqldb.Tx, kind LinkKind, hash string) (l Link, err error) {
	err = tx.QueryRow(ctx, `
		DELETE FROM person_link WHERE hash = $1 AND kind = $2 AND expires > $3 RETURNING person_id, target`,
		hash, kind, sqldb.At(tx.Now)).Scan(&l.PersonID, &l.Target)
	if errors.Is(err, sqldb.ErrNoRows) {
		return l, errLink
	}
	return l, err
}

// DeleteExpiredLinks deletes all expired links, of all people.
func DeleteExpiredLinks(ctx context.Context, tx *sqldb.Tx) error {
	_, err := tx.Exec(ctx, `DELETE FROM person_link WHERE expires <= $1`, sqldb.At(tx.Now))
	return err
}

// Queries for notices.

func insertNotice(ctx context.Context, tx *sqldb.Tx, personID string, n Notice) error {
	_, err := tx.Exec(ctx, `INSERT INTO person_notice (id, person_id, kind, text, created) VALUES ($1, $2, $3, $4, $5)`,
		n.ID, personID, n.Kind, n.Text, sqldb.At(n.Created))
	return err
}

// Notices returns at most limit notices of a person, newest first.
func Notices(ctx context.Context, tx *sqldb.Tx, personID string, limit int) ([]Notice, error) {
	return sqldb.All(ctx, tx, `
		SELECT id, kind, text, created FROM person_notice WHERE person_id = $1 ORDER BY created DESC, id DESC LIMIT $2`,
		[]any{personID, limit}, func(row sqldb.Scanner) (n Notice, err error) {
			var created sqldb.Time
			err = row.Scan(&n.ID, &n.Kind, &n.Text, &created)
			n.Created = created.Time
			return n, err
		})
}

// Queries for identities at OpenID providers.

// Identities returns a person's identities at all OpenID providers, ordered by
// issuer, without the refresh tokens.
func Identities(ctx context.Context, tx *sqldb.Tx, personID string) ([]Identity, error) {
	return sqldb.All(ctx, tx, `SELECT issuer, subject, person_id, provider, checked FROM person_identity WHERE person_id = $1 ORDER BY issuer`,
		[]any{personID}, func(row sqldb.Scanner) (i Identity, err error) {
			var checked sqldb.Time
			err = row.Scan(&i.Issuer, &i.Subject, &i.PersonID, &i.Provider, &checked)
			i.Checked = checked.Time
			return i, err
		})
}

func identityOwner(ctx context.Context, tx *sqldb.Tx, issuer, subject string) (id string, err error) {
	err = tx.QueryRow(ctx, `SELECT person_id FROM person_identity WHERE issuer = $1 AND subject = $2`, issuer, subject).Scan(&id)
	if errors.Is(err, sqldb.ErrNoRows) {
		return "", errNobody
	}
	return id, err
}

// upsertIdentity stores an identity. A person has one identity per issuer: a
// second subject at the same issuer is refused.
func upsertIdentity(ctx context.Context, tx *sqldb.Tx, i Identity) error {
	n, err := tx.Exec(ctx, `
		INSERT INTO person_identity (issuer, subject, person_id, provider, refresh, checked, created)
		VALUES ($1, $2, $3, $4, $5, $6, $6)
		ON CONFLICT (issuer, subject) DO UPDATE SET provider = excluded.provider, refresh = excluded.refresh, checked = excluded.checked, asking = NULL
		WHERE person_identity.person_id = excluded.person_id`,
		i.Issuer, i.Subject, i.PersonID, i.Provider, i.Refresh, sqldb.At(tx.Now))
	if sqldb.IsDuplicate(err) || err == nil && n == 0 {
		return fault.New(fault.Forbidden, "This account belongs to another identity of the same provider.").With("reason", "provider")
	}
	return err
}

// IdentityAt returns a person's identity at the provider with the given display
// name, and whether there is one.
func IdentityAt(ctx context.Context, tx *sqldb.Tx, personID, provider string) (i Identity, found bool, err error) {
	var checked sqldb.Time
	err = tx.QueryRow(ctx, `
		SELECT issuer, subject, person_id, provider, refresh, checked FROM person_identity
		WHERE person_id = $1 AND provider = $2 ORDER BY created DESC, issuer LIMIT 1`, personID, provider).
		Scan(&i.Issuer, &i.Subject, &i.PersonID, &i.Provider, &i.Refresh, &checked)
	if errors.Is(err, sqldb.ErrNoRows) {
		return i, false, nil
	}
	i.Checked = checked.Time
	return i, err == nil, err
}

// ClaimConfirmation takes the lease that is required for a request to the
// provider about a person. It returns false if another caller has the lease or
// the identity has changed. Only one caller at a time may send the request,
// because a provider that rotates refresh tokens treats a second request with
// the same token as theft.
func ClaimConfirmation(ctx context.Context, tx *sqldb.Tx, i Identity, lease time.Duration) (bool, error) {
	n, err := tx.Exec(ctx, `
		UPDATE person_identity SET asking = $4
		WHERE issuer = $1 AND subject = $2 AND (asking IS NULL OR asking <= $3) AND checked = $5`,
		i.Issuer, i.Subject, sqldb.At(tx.Now), sqldb.At(tx.Now.Add(lease)), sqldb.At(i.Checked))
	return n == 1, err
}

// storeConfirmation stores the refresh token from the provider's response. It
// returns false, and stores nothing, if the person has signed in with the
// provider again since the request: the token of that sign-in is newer.
func storeConfirmation(ctx context.Context, tx *sqldb.Tx, i Identity, refresh string) (bool, error) {
	n, err := tx.Exec(ctx, `
		UPDATE person_identity SET refresh = $3, checked = $4, asking = NULL WHERE issuer = $1 AND subject = $2 AND refresh = $5`,
		i.Issuer, i.Subject, refresh, sqldb.At(tx.Now), i.Refresh)
	return n == 1, err
}

// ReleaseConfirmation releases the lease of ClaimConfirmation after the
// provider did not respond.
func ReleaseConfirmation(ctx context.Context, tx *sqldb.Tx, i Identity) error {
	_, err := tx.Exec(ctx, `UPDATE person_identity SET asking = NULL WHERE issuer = $1 AND subject = $2`, i.Issuer, i.Subject)
	return err
}

// Checks are the invariants of this package's tables, as queries for the rows
// that violate them.
var Checks = []sqldb.Check{
	{Name: "e-mail addresses are indexed in lower case", Query: `
		SELECT 'person ' || id FROM person WHERE email_key <> lower(email_key) AND deleted IS NULL`},
	{Name: "there is no set-up link once a person exists", Query: `
		SELECT 'deployment ' || name FROM deployment WHERE name LIKE '` + setupRow + `%' AND EXISTS (SELECT 1 FROM person)`},
	{Name: "links are stored only as SHA-256", Query: `
		SELECT 'person_link ' || hash FROM person_link WHERE length(hash) <> 64`},
	// A person with neither a password nor an OpenID identity can sign in with
	// a password-reset link that is sent to a verified e-mail address.
	{Name: "every person has a way to sign in", Query: `
		SELECT 'person ' || p.id FROM person p WHERE p.password_hash = '' AND NOT p.suspended AND NOT p.email_verified
			AND NOT EXISTS (SELECT 1 FROM person_identity i WHERE i.person_id = p.id)`},
	{Name: "the row of a deleted person has no personal data", Query: `
		SELECT 'person ' || id FROM person WHERE deleted IS NOT NULL
			AND (email <> '' OR email_key <> '` + erased + `' || id OR email_verified OR password_hash <> '' OR NOT suspended OR signed_in <> 0 OR signed_in_before <> 0)`},
	{Name: "only deleted people have no e-mail address", Query: `
		SELECT 'person ' || id FROM person WHERE deleted IS NULL AND (email = '' OR email_key LIKE '` + erased + `%')`},
	{Name: "a deleted person has no identity, link or notice", Query: `
		SELECT 'person ' || p.id FROM person p WHERE p.deleted IS NOT NULL AND (
			EXISTS (SELECT 1 FROM person_identity i WHERE i.person_id = p.id)
			OR EXISTS (SELECT 1 FROM person_link l WHERE l.person_id = p.id)
			OR EXISTS (SELECT 1 FROM person_notice n WHERE n.person_id = p.id))`},
}
