package device

import (
	"context"
	"crypto/subtle"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"atelier/internal/base/sqldb"
)

// grant is a row of the table device_grant.
type grant struct {
	Grant
	state      State
	network    string
	deviceHash string
	personID   string // the person who approved or refused the grant
	provider   string
	wait       time.Duration // minimum time between polls that the service enforces
	told       time.Duration // interval that was sent to the client
	polled     time.Time
	deviceID   string
	claimed    time.Time
	revoked    bool // the device of the claimed grant was revoked

	// Only authorization codes of apps have these.
	clientID    string
	redirectURI string
	challenge   string
}

const grantColumns = `g.id, g.state, g.device_hash, g.plugin_kind, g.agent, g.address, coalesce(g.person_id, ''), g.provider, g.locked,
	g.wait_ms, g.told_s, g.polled, coalesce(g.device_id, ''), g.claimed, g.created, g.expires, coalesce(g.client_id, ''), g.redirect_uri, g.challenge`

func scanGrant(row sqldb.Scanner, more ...any) (g grant, err error) {
	var waitMS, toldS int64
	var polled, claimed, created, expires sqldb.Time
	err = row.Scan(append([]any{&g.ID, (*string)(&g.state), &g.deviceHash, &g.PluginKind, &g.Agent, &g.Address, &g.personID, &g.provider, &g.Locked,
		&waitMS, &toldS, &polled, &g.deviceID, &claimed, &created, &expires, &g.clientID, &g.redirectURI, &g.challenge}, more...)...)
	g.wait = time.Duration(waitMS) * time.Millisecond
	g.told = time.Duration(toldS) * time.Second
	g.polled = polled.Time
	g.claimed = claimed.Time
	g.Created = created.Time
	g.Expires = expires.Time
	return g, err
}

// byDeviceHash returns the grant whose device code has the given hash. Every
// poll calls it.
func byDeviceHash(ctx context.Context, db *sqldb.DB, hash string) (g grant, err error) {
	var revoked bool
	g, err = scanGrant(db.QueryRow(ctx, `
		SELECT `+grantColumns+`, d.revoked IS NOT NULL
		FROM device_grant g LEFT JOIN device d ON d.id = g.device_id WHERE g.device_hash = $1`, hash), &revoked)
	g.revoked = revoked
	return g, err
}

func byUserHash(ctx context.Context, tx *sqldb.Tx, hash string) (grant, error) {
	return scanGrant(tx.QueryRow(ctx, `
		SELECT `+grantColumns+` FROM device_grant g
		WHERE g.user_hash = $1 AND g.state IN ('pending', 'approved') AND g.expires > $2`, hash, sqldb.At(tx.Now)))
}

// insertGrant adds a grant unless another grant has the same user code.
func insertGrant(ctx context.Context, tx *sqldb.Tx, g grant, userHash string) (fresh bool, err error) {
	n, err := tx.Exec(ctx, `
		INSERT INTO device_grant (id, device_hash, user_hash, state, plugin_kind, agent, address, provider, seen_by, locked, wrong,
			wait_ms, told_s, created, expires, network, person_id, client_id, redirect_uri, challenge)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $13, '', FALSE, 0, $8, $9, $10, $11, $12, nullif($14, ''), nullif($15, ''), $16, $17)
		ON CONFLICT DO NOTHING`,
		g.ID, g.deviceHash, userHash, string(g.state), g.PluginKind, g.Agent, g.Address,
		g.wait.Milliseconds(), int64(g.told/time.Second), sqldb.At(g.Created), sqldb.At(g.Expires), g.network, g.provider, g.personID, g.clientID, g.redirectURI, g.challenge)
	return n == 1, err
}

func countLive(ctx context.Context, tx *sqldb.Tx) (n int, err error) {
	err = tx.QueryRow(ctx, `SELECT count(*) FROM device_grant WHERE state IN ('pending', 'approved') AND expires > $1`, sqldb.At(tx.Now)).Scan(&n)
	return n, err
}

func countLiveOf(ctx context.Context, tx *sqldb.Tx, network string) (n int, err error) {
	err = tx.QueryRow(ctx, `SELECT count(*) FROM device_grant WHERE network = $2 AND state IN ('pending', 'approved') AND expires > $1`,
		sqldb.At(tx.Now), network).Scan(&n)
	return n, err
}

// largestNetwork returns the network with the most live grants. If several have
// the same number, it returns the network with the oldest grant.
func largestNetwork(ctx context.Context, tx *sqldb.Tx) (network string, err error) {
	err = tx.QueryRow(ctx, `
		SELECT network FROM device_grant WHERE state IN ('pending', 'approved') AND expires > $1
		GROUP BY network ORDER BY count(*) DESC, min(expires), network LIMIT 1`, sqldb.At(tx.Now)).Scan(&network)
	return network, err
}

// endOldest revokes the oldest pending grant of a network, or its oldest
// approved grant if none is pending. It returns nil if it revokes nothing,
// because another transaction may have revoked or claimed the grant first.
func endOldest(ctx context.Context, tx *sqldb.Tx, network string) error {
	for _, from := range []State{Pending, Approved} {
		n, err := moveState(ctx, tx, from, Gone, ``, `id = (
			SELECT o.id FROM device_grant o WHERE o.network = $3 AND o.state IN ('pending', 'approved') AND o.state = $2 AND o.expires > $4 ORDER BY o.expires, o.id LIMIT 1)`,
			network, sqldb.At(tx.Now))
		if err != nil || n == 1 {
			return err
		}
	}
	return nil
}

// lockStarts takes a lock until tx ends, so that new grants are created one
// after the other.
func lockStarts(ctx context.Context, tx *sqldb.Tx) error {
	if _, err := tx.Exec(ctx, `INSERT INTO deployment (name, value) VALUES ('device_starts', '') ON CONFLICT (name) DO NOTHING`); err != nil {
		return err
	}
	var value string
	return tx.QueryRow(ctx, `SELECT value FROM deployment WHERE name = 'device_starts'`+tx.Dialect.ForUpdate).Scan(&value)
}

// lockPerson locks a person's row until tx ends, so that approvals, claims and
// sign-outs of the same person run one after the other.
func lockPerson(ctx context.Context, tx *sqldb.Tx, personID string) error {
	var id string
	return tx.QueryRow(ctx, `SELECT id FROM person WHERE id = $1`+tx.Dialect.ForUpdate, personID).Scan(&id)
}

// recordViewer records the first person who opens a grant. When a second person
// opens it, recordViewer locks the grant, so that it can no longer be approved.
func recordViewer(ctx context.Context, tx *sqldb.Tx, grantID, personID string) (changed bool, err error) {
	n, err := tx.Exec(ctx, `
		UPDATE device_grant SET locked = (seen_by <> ''), seen_by = CASE WHEN seen_by = '' THEN $1 ELSE seen_by END
		WHERE id = $2 AND state = 'pending' AND NOT locked AND seen_by <> $1`, personID, grantID)
	return n == 1, err
}

// moveState changes the state of all grants that are in the state from and
// match the SQL condition where. The SQL in set assigns further columns. The
// placeholders of args begin with $3. moveState returns the number of changed
// grants.
func moveState(ctx context.Context, tx *sqldb.Tx, from, to State, set, where string, args ...any) (int64, error) {
	if !slices.Contains(next[from], to) {
		return 0, fmt.Errorf("a device grant cannot change from %s to %s", from, to)
	}
	return tx.Exec(ctx, `UPDATE device_grant SET state = $1`+set+` WHERE state = $2 AND `+where,
		append([]any{string(to), string(from)}, args...)...)
}

func approveGrant(ctx context.Context, tx *sqldb.Tx, grantID string, by Decision) (won bool, err error) {
	n, err := moveState(ctx, tx, Pending, Approved, `, person_id = $5, provider = $6`,
		`id = $3 AND expires > $4 AND NOT locked AND seen_by IN ('', $5)`, grantID, sqldb.At(tx.Now), by.PersonID, by.Provider)
	return n == 1, err
}

func refuseGrant(ctx context.Context, tx *sqldb.Tx, grantID string, by Decision) (won bool, err error) {
	n, err := moveState(ctx, tx, Pending, Gone, `, person_id = $5`, `id = $3 AND expires > $4`, grantID, sqldb.At(tx.Now), by.PersonID)
	return n == 1, err
}

// decisionOf returns a person's decision about the grant with the given user
// code, if the grant has not expired. An approval has stored a provider, a
// refusal has not. If a sign-out has voided an approved grant, there is no
// decision.
func decisionOf(ctx context.Context, tx *sqldb.Tx, userHash, personID string) (approved, found bool, err error) {
	err = tx.QueryRow(ctx, `
		SELECT state <> 'gone' FROM device_grant
		WHERE person_id = $1 AND user_hash = $2 AND expires > $3 AND (state IN ('approved', 'claimed') OR state = 'gone' AND provider = '')
		ORDER BY created DESC LIMIT 1`, personID, userHash, sqldb.At(tx.Now)).Scan(&approved)
	if errors.Is(err, sqldb.ErrNoRows) {
		return false, false, nil
	}
	return approved, err == nil, err
}

func claimGrant(ctx context.Context, tx *sqldb.Tx, grantID string) (won bool, err error) {
	n, err := moveState(ctx, tx, Approved, Claimed, `, claimed = $4`, `id = $3 AND expires > $4`, grantID, sqldb.At(tx.Now))
	return n == 1, err
}

func voidApproved(ctx context.Context, tx *sqldb.Tx, personID string) error {
	_, err := moveState(ctx, tx, Approved, Gone, ``, `person_id = $3`, personID)
	return err
}

func voidWrong(ctx context.Context, tx *sqldb.Tx, grantID string) (dead bool, err error) {
	n, err := moveState(ctx, tx, Pending, Gone, ``, `id = $3 AND wrong >= $4`, grantID, int64(maxWrong))
	return n == 1, err
}

func countWrong(ctx context.Context, tx *sqldb.Tx, grantID string) (counted bool, err error) {
	n, err := tx.Exec(ctx, `UPDATE device_grant SET wrong = wrong + 1 WHERE id = $1 AND state = 'pending' AND expires > $2`, grantID, sqldb.At(tx.Now))
	return n == 1, err
}

// slowDown stores the longer polling intervals of a grant, unless a concurrent
// poll has already changed them.
func slowDown(ctx context.Context, tx *sqldb.Tx, g grant, told, wait time.Duration) error {
	_, err := tx.Exec(ctx, `UPDATE device_grant SET told_s = $1, wait_ms = $2 WHERE id = $3 AND told_s = $4 AND wait_ms = $5`,
		int64(told/time.Second), wait.Milliseconds(), g.ID, int64(g.told/time.Second), g.wait.Milliseconds())
	return err
}

// markPolled records the time of a poll that did not come too soon. It returns
// false if a concurrent poll has already been recorded.
func markPolled(ctx context.Context, tx *sqldb.Tx, g grant) (first bool, err error) {
	n, err := tx.Exec(ctx, `UPDATE device_grant SET polled = $1 WHERE id = $2 AND polled IS NOT DISTINCT FROM $3`,
		sqldb.At(tx.Now), g.ID, sqldb.At(g.polled))
	return n == 1, err
}

func deleteGrants(ctx context.Context, tx *sqldb.Tx, before time.Time, most int64) (int64, error) {
	return tx.Exec(ctx, `
		DELETE FROM device_grant WHERE id IN (SELECT id FROM device_grant WHERE expires < $1 ORDER BY expires LIMIT $2)`,
		sqldb.At(before), most)
}

const deviceColumns = `id, person_id, plugin_kind, agent, address, provider, created, last_used, revoked, coalesce(client_id, '')`

func scanDevice(row sqldb.Scanner) (d Device, err error) {
	var created, lastUsed, revoked sqldb.Time
	err = row.Scan(&d.ID, &d.PersonID, &d.PluginKind, &d.Agent, &d.Address, &d.Provider, &created, &lastUsed, &revoked, &d.ClientID)
	d.Created = created.Time
	d.LastUsed = lastUsed.Time
	if !revoked.IsZero() {
		d.Revoked = &revoked.Time
	}
	return d, err
}

// insertDevice adds a device and links it to the grant that it claimed.
func insertDevice(ctx context.Context, tx *sqldb.Tx, d Device, grantID string) error {
	_, err := tx.Exec(ctx, `
		INSERT INTO device (id, person_id, plugin_kind, agent, address, provider, created, last_used, revoked_why, client_id)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, '', nullif($9, ''))`,
		d.ID, d.PersonID, d.PluginKind, d.Agent, d.Address, d.Provider, sqldb.At(d.Created), sqldb.At(d.LastUsed), d.ClientID)
	if err != nil {
		return err
	}
	if err := Sealed.RenewSeals(ctx, tx, `id = $1`, d.ID); err != nil {
		return err
	}
	_, err = tx.Exec(ctx, `UPDATE device_grant SET device_id = $1 WHERE id = $2`, d.ID, grantID)
	return err
}

// readLive returns the status of a device that is not revoked. Every request
// with an ID token calls it.
func readLive(ctx context.Context, q sqldb.Querier, deviceID string) (l DeviceStatus, err error) {
	var lastUsed sqldb.Time
	err = q.QueryRow(ctx, `
		SELECT d.person_id, d.plugin_kind, d.provider, d.last_used, d.client_id IS NOT NULL, p.email, p.email_verified, p.suspended
		FROM device d JOIN person p ON p.id = d.person_id WHERE d.id = $1 AND d.revoked IS NULL`+
		q.Locking("UPDATE OF p", "SHARE OF d"), deviceID).
		Scan(&l.PersonID, &l.PluginKind, &l.Provider, &lastUsed, &l.IsApp, &l.Email, &l.Verified, &l.Suspended)
	l.LastUsed = lastUsed.Time
	return l, err
}

func touchDevice(ctx context.Context, tx *sqldb.Tx, deviceID, address string) error {
	_, err := tx.Exec(ctx, `UPDATE device SET last_used = $1, address = $2 WHERE id = $3 AND revoked IS NULL`, sqldb.At(tx.Now), address, deviceID)
	return err
}

func devicesOfPerson(ctx context.Context, tx *sqldb.Tx, personID string) ([]Device, error) {
	return sqldb.All(ctx, tx, `SELECT `+deviceColumns+` FROM device WHERE person_id = $1 AND revoked IS NULL ORDER BY created DESC, id DESC`,
		[]any{personID}, scanDevice)
}

func pageOfPerson(ctx context.Context, tx *sqldb.Tx, personID string, after *After, limit int) ([]Device, error) {
	query := `SELECT ` + deviceColumns + ` FROM device WHERE person_id = $1 AND revoked IS NULL`
	args := []any{personID, limit}
	if after != nil {
		query += ` AND (created, id) < ($3, $4)`
		args = append(args, sqldb.At(after.Created), after.ID)
	}
	return sqldb.All(ctx, tx, query+` ORDER BY created DESC, id DESC LIMIT $2`, args, scanDevice)
}

// ListLive returns at most limit signed-in devices of a person, or of all
// people if personID is "". The list is ordered by id and starts after afterID.
func ListLive(ctx context.Context, tx *sqldb.Tx, personID, afterID string, limit int) ([]Device, error) {
	where := `revoked IS NULL AND id > $1`
	args := []any{afterID, limit}
	if personID != "" {
		where += ` AND person_id = $3`
		args = append(args, personID)
	}
	return sqldb.All(ctx, tx, `SELECT `+deviceColumns+` FROM device WHERE `+where+` ORDER BY id LIMIT $2`, args, scanDevice)
}

func byID(ctx context.Context, tx *sqldb.Tx, id string) (Device, error) {
	return scanDevice(tx.QueryRow(ctx, `SELECT `+deviceColumns+` FROM device WHERE id = $1`, id))
}

// ListAll returns every device of a person, including devices on which they
// have been signed out, newest first.
func ListAll(ctx context.Context, tx *sqldb.Tx, personID string) ([]Device, error) {
	return sqldb.All(ctx, tx, `SELECT `+deviceColumns+` FROM device WHERE person_id = $1 ORDER BY created DESC, id DESC`, []any{personID}, scanDevice)
}

// Erase deletes a person's devices, refresh tokens and grants (sign-in
// requests). The caller has locked the person, so that no grant is claimed at
// the same time.
func Erase(ctx context.Context, tx *sqldb.Tx, personID string) error {
	for _, query := range []string{
		`DELETE FROM device_grant WHERE person_id = $1`,
		`DELETE FROM refresh_token WHERE device_id IN (SELECT id FROM device WHERE person_id = $1)`,
		`DELETE FROM device WHERE person_id = $1`,
	} {
		if _, err := tx.Exec(ctx, query, personID); err != nil {
			return err
		}
	}
	return nil
}

func revokeDevice(ctx context.Context, tx *sqldb.Tx, personID, deviceID, why string) (n int64, err error) {
	err = Sealed.ChangeRows(ctx, tx, `id = $1`, []any{deviceID}, func() (err error) {
		n, err = tx.Exec(ctx, `UPDATE device SET revoked = $1, revoked_why = $2 WHERE id = $3 AND person_id = $4 AND revoked IS NULL`,
			sqldb.At(tx.Now), why, deviceID, personID)
		return err
	})
	return n, err
}

func revokeAll(ctx context.Context, tx *sqldb.Tx, personID, why string) (n int64, err error) {
	open := `person_id = $1 AND (revoked IS NULL OR revoked = $2)`
	err = Sealed.ChangeRows(ctx, tx, open, []any{personID, sqldb.At(tx.Now)}, func() (err error) {
		n, err = tx.Exec(ctx, `UPDATE device SET revoked = $1, revoked_why = $2 WHERE person_id = $3 AND revoked IS NULL`, sqldb.At(tx.Now), why, personID)
		return err
	})
	return n, err
}

// lockDevice locks and returns a device that is not revoked.
func lockDevice(ctx context.Context, tx *sqldb.Tx, deviceID string) (Device, error) {
	return scanDevice(tx.QueryRow(ctx, `SELECT `+deviceColumns+` FROM device WHERE id = $1 AND revoked IS NULL`+tx.Dialect.ForUpdate, deviceID))
}

// deviceOf returns the device whose refresh token has the given hash, or
// sqldb.ErrNoRows if there is none or the device is revoked.
//
// If no token has the hash, the query reads the token whose hash comes next, or
// the first one after the last, and its device, and the comparison here refuses
// them: the time of a refusal does not tell whether the token ever existed.
func deviceOf(ctx context.Context, db sqldb.Querier, tokenHash string) (Device, error) {
	var found string
	dev, err := scanDevice(scannerWithHash{db.QueryRow(ctx, `
		SELECT `+deviceColumns+`, token_hash FROM device, (
			SELECT hash AS token_hash, device_id AS token_device FROM refresh_token
			WHERE hash = (SELECT max(one) FROM (
				SELECT min(hash) AS one FROM refresh_token WHERE hash >= $1 UNION ALL SELECT min(hash) FROM refresh_token) AS candidates)
		) AS nearest WHERE id = token_device`, tokenHash), &found})
	if err != nil {
		return Device{}, err
	}
	if subtle.ConstantTimeCompare([]byte(found), []byte(tokenHash)) != 1 || dev.Revoked != nil {
		return Device{}, sqldb.ErrNoRows
	}
	return dev, nil
}

// scannerWithHash reads the hash of a token from the last column of a row.
type scannerWithHash struct {
	row  sqldb.Scanner
	hash *string
}

func (s scannerWithHash) Scan(dest ...any) error { return s.row.Scan(append(dest, s.hash)...) }

func tokenByHash(ctx context.Context, tx *sqldb.Tx, hash string) (t token, err error) {
	var created, replaced sqldb.Time
	err = tx.QueryRow(ctx, `
		SELECT t.generation, l.generation, t.created, t.replaced
		FROM refresh_token t JOIN refresh_token l ON l.device_id = t.device_id AND l.replaced IS NULL WHERE t.hash = $1`, hash).
		Scan(&t.generation, &t.live, &created, &replaced)
	t.created = created.Time
	t.replaced = replaced.Time
	return t, err
}

func insertToken(ctx context.Context, tx *sqldb.Tx, deviceID, hash string, generation int64) error {
	_, err := tx.Exec(ctx, `INSERT INTO refresh_token (hash, device_id, generation, created, seal) VALUES ($1, $2, $3, $4, $5)`,
		hash, deviceID, generation, sqldb.At(tx.Now), SealedRefreshTokens.SealOf(tx, hash, deviceID, strconv.FormatInt(generation, 10)))
	return err
}

func replaceToken(ctx context.Context, tx *sqldb.Tx, hash string) error {
	_, err := tx.Exec(ctx, `UPDATE refresh_token SET replaced = $1 WHERE hash = $2`, sqldb.At(tx.Now), hash)
	return err
}

// notHash returns the SQL condition that a column does not contain a SHA-256
// hash in hexadecimal.
func notHash(column string) string {
	return `(length(` + column + `) <> 64 OR ltrim(` + column + `, '0123456789abcdef') <> '')`
}

// Checks are the invariants of this package's tables, as queries for the rows
// that violate them.
var Checks = []sqldb.Check{
	{Name: "a deleted person has no device and has approved none", Query: `
		SELECT 'person ' || p.id FROM person p WHERE p.deleted IS NOT NULL AND (
			EXISTS (SELECT 1 FROM device d WHERE d.person_id = p.id) OR EXISTS (SELECT 1 FROM device_grant g WHERE g.person_id = p.id))`},
	{Name: "device codes are stored only as hashes", Query: `
		SELECT 'device_grant ' || id FROM device_grant WHERE ` + notHash(`device_hash`) + ` OR ` + notHash(`user_hash`)},
	{Name: "the code of an app, and no other, has an address and a challenge", Query: `
		SELECT 'device_grant ' || id FROM device_grant
		WHERE (client_id IS NULL) <> (redirect_uri = '') OR (client_id IS NULL) <> (challenge = '')`},
	{Name: "an app that is signed in has been allowed", Query: `
		SELECT 'device ' || d.id FROM device d JOIN oauth_client c ON c.id = d.client_id WHERE c.approved IS NULL`},
	{Name: "refresh tokens are stored only as SHA-256", Query: `
		SELECT 'refresh_token of device ' || device_id FROM refresh_token WHERE ` + notHash(`hash`)},
	{Name: "an approved grant has a person", Query: `
		SELECT 'device_grant ' || id FROM device_grant WHERE state IN ('approved', 'claimed') AND person_id IS NULL`},
	{Name: "every claimed grant, and no other, has a device", Query: `
		SELECT 'device_grant ' || g.id FROM device_grant g LEFT JOIN device d ON d.id = g.device_id AND d.person_id = g.person_id
		WHERE g.state = 'claimed' AND (d.id IS NULL OR g.claimed IS NULL) OR g.state <> 'claimed' AND g.device_id IS NOT NULL`},
	{Name: "a device has one valid refresh token", Query: `
		SELECT 'device ' || d.id FROM device d LEFT JOIN refresh_token t ON t.device_id = d.id AND t.replaced IS NULL
		GROUP BY d.id, d.revoked HAVING count(t.hash) > 1 OR d.revoked IS NULL AND count(t.hash) = 0`},
	{Name: "the valid refresh token of a device is its newest", Query: `
		SELECT 'device ' || t.device_id FROM refresh_token t
		WHERE t.replaced IS NULL AND EXISTS (SELECT 1 FROM refresh_token o WHERE o.device_id = t.device_id AND o.generation > t.generation)`},
}

// LastUsed returns, by person id, when people last used one of their devices.
// People without such a use are left out. There must be at least one id.
func LastUsed(ctx context.Context, tx *sqldb.Tx, personIDs []string) (map[string]sqldb.Time, error) {
	in, args := sqldb.In(personIDs)
	return sqldb.Map[string, sqldb.Time](ctx, tx, `
		SELECT person_id, max(last_used) FROM device WHERE person_id IN `+in+` AND last_used IS NOT NULL GROUP BY person_id`, args)
}
