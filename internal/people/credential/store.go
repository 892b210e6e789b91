package credential

import (
	"context"
	"crypto/subtle"
	"errors"

	"atelier/internal/base/ids"
	"atelier/internal/base/sqldb"
)

const columns = `id, person_id, coalesce(company_id, ''), minted_by, name, hint, created, last_used`

func scanToken(row sqldb.Scanner) (t Token, err error) {
	var created, used sqldb.Time
	err = row.Scan(&t.ID, &t.PersonID, &t.CompanyID, &t.MintedBy, &t.Name, &t.Hint, &created, &used)
	t.Created = created.Time
	t.LastUsed = used.Time
	return t, err
}

func insertToken(ctx context.Context, tx *sqldb.Tx, t Token, hash string) error {
	_, err := tx.Exec(ctx, `
		INSERT INTO access_token (id, person_id, company_id, minted_by, name, hash, hint, created)
		VALUES ($1, $2, nullif($3, ''), $4, $5, $6, $7, $8)`,
		t.ID, t.PersonID, t.CompanyID, t.MintedBy, t.Name, hash, t.Hint, sqldb.At(t.Created))
	if err != nil {
		return err
	}
	return Sealed.RenewSeals(ctx, tx, `id = $1`, t.ID)
}

// ownerCondition returns the SQL condition that selects a holder's tokens, and
// the value of its parameter $1.
func (h Holder) ownerCondition() (condition, id string) {
	if h.CompanyID != "" {
		return `company_id = $1`, h.CompanyID
	}
	return `person_id = $1`, h.PersonID
}

// List returns at most limit tokens of the holder, newest first, starting after
// the given position.
func List(ctx context.Context, tx *sqldb.Tx, h Holder, after *After, limit int) ([]Token, error) {
	of, id := h.ownerCondition()
	query := `SELECT ` + columns + ` FROM access_token WHERE ` + of
	args := []any{id, limit}
	if after != nil {
		query += ` AND (created, id) < ($3, $4)`
		args = append(args, sqldb.At(after.Created), after.ID)
	}
	return sqldb.All(ctx, tx, query+` ORDER BY created DESC, id DESC LIMIT $2`, args, scanToken)
}

func byID(ctx context.Context, tx *sqldb.Tx, h Holder, id string) (Token, error) {
	if !ids.Valid(id) {
		return Token{}, errUnknownToken
	}
	of, holder := h.ownerCondition()
	t, err := scanToken(tx.QueryRow(ctx, `SELECT `+columns+` FROM access_token WHERE `+of+` AND id = $2`+tx.Dialect.ForUpdate, holder, id))
	if errors.Is(err, sqldb.ErrNoRows) {
		return Token{}, errUnknownToken
	}
	return t, err
}

func replaceSecret(ctx context.Context, tx *sqldb.Tx, t Token, hash string) error {
	return Sealed.ChangeRows(ctx, tx, `id = $1`, []any{t.ID}, func() error {
		_, err := tx.Exec(ctx, `UPDATE access_token SET hash = $2, hint = $3, last_used = NULL WHERE id = $1`, t.ID, hash, t.Hint)
		return err
	})
}

func deleteToken(ctx context.Context, tx *sqldb.Tx, id string) error {
	_, err := tx.Exec(ctx, `DELETE FROM access_token WHERE id = $1`, id)
	return err
}

// DeleteOf deletes all tokens of a company that act for a person, or the
// person's personal tokens if companyID is "". It returns the deleted tokens.
func DeleteOf(ctx context.Context, tx *sqldb.Tx, personID, companyID string) ([]Token, error) {
	return sqldb.All(ctx, tx, `DELETE FROM access_token WHERE person_id = $1 AND coalesce(company_id, '') = $2 RETURNING `+columns,
		[]any{personID, companyID}, scanToken)
}

// DeleteAll deletes every token that acts for a person, including company
// tokens, and returns the deleted tokens.
func DeleteAll(ctx context.Context, tx *sqldb.Tx, personID string) ([]Token, error) {
	return sqldb.All(ctx, tx, `DELETE FROM access_token WHERE person_id = $1 RETURNING `+columns, []any{personID}, scanToken)
}

func deleteByHash(ctx context.Context, tx *sqldb.Tx, hash string) (Token, error) {
	t, err := scanToken(tx.QueryRow(ctx, `DELETE FROM access_token WHERE hash = $1 RETURNING `+columns, hash))
	if errors.Is(err, sqldb.ErrNoRows) {
		return Token{}, errUnknownToken
	}
	return t, err
}

// byHash returns the token with the given hash. Every request with an access
// token calls it. Tokens of suspended people are invalid.
func byHash(ctx context.Context, q sqldb.Querier, hash string) (h CheckedToken, err error) {
	var stored string
	var used sqldb.Time
	err = q.QueryRow(ctx, `
		SELECT t.id, t.person_id, coalesce(t.company_id, ''), t.hash, t.last_used, p.email_verified
		FROM access_token t JOIN person p ON p.id = t.person_id
		WHERE t.hash = $1 AND NOT p.suspended`+q.Locking("UPDATE OF p", "SHARE OF t"), hash).
		Scan(&h.ID, &h.PersonID, &h.CompanyID, &stored, &used, &h.EmailVerified)
	if errors.Is(err, sqldb.ErrNoRows) || err == nil && subtle.ConstantTimeCompare([]byte(hash), []byte(stored)) != 1 {
		return CheckedToken{}, ErrInvalid
	}
	h.LastUsed = used.Time
	return h, err
}

// Touch records the current time as the last use of a token, and reports
// whether it is the first use.
func Touch(ctx context.Context, tx *sqldb.Tx, id string) (first bool, err error) {
	n, err := tx.Exec(ctx, `UPDATE access_token SET last_used = $2 WHERE id = $1 AND last_used IS NULL`, id, sqldb.At(tx.Now))
	if err != nil || n == 1 {
		return n == 1, err
	}
	_, err = tx.Exec(ctx, `UPDATE access_token SET last_used = $2 WHERE id = $1`, id, sqldb.At(tx.Now))
	return false, err
}

// Queries for SCIM tokens.

const scimTokenColumns = `company_id, hint, made_by, created, last_used`

func scanSCIMToken(row sqldb.Scanner, more ...any) (t SCIMToken, err error) {
	var created, used sqldb.Time
	err = row.Scan(append([]any{&t.CompanyID, &t.Hint, &t.MadeBy, &created, &used}, more...)...)
	t.Created = created.Time
	t.LastUsed = used.Time
	return t, err
}

func storeSCIMToken(ctx context.Context, tx *sqldb.Tx, t SCIMToken, hash string) error {
	_, err := tx.Exec(ctx, `
		INSERT INTO scim_token (company_id, hash, hint, made_by, created) VALUES ($1, $2, $3, $4, $5)
		ON CONFLICT (company_id) DO UPDATE SET hash = excluded.hash, hint = excluded.hint, made_by = excluded.made_by,
			created = excluded.created, last_used = NULL`,
		t.CompanyID, hash, t.Hint, t.MadeBy, sqldb.At(t.Created))
	if err != nil {
		return err
	}
	return SealedSCIMTokens.RenewSeals(ctx, tx, `company_id = $1`, t.CompanyID)
}

// SCIMTokenOf returns a company's SCIM token, or errNoSCIMToken.
func SCIMTokenOf(ctx context.Context, tx *sqldb.Tx, companyID string) (SCIMToken, error) {
	t, err := scanSCIMToken(tx.QueryRow(ctx, `SELECT `+scimTokenColumns+` FROM scim_token WHERE company_id = $1`, companyID))
	if errors.Is(err, sqldb.ErrNoRows) {
		return SCIMToken{}, errNoSCIMToken
	}
	return t, err
}

// CompaniesWithSCIMToken returns the ids of all companies that have a SCIM
// token, in ascending order.
func CompaniesWithSCIMToken(ctx context.Context, tx *sqldb.Tx) ([]string, error) {
	return sqldb.All(ctx, tx, `SELECT company_id FROM scim_token ORDER BY company_id`, nil,
		func(row sqldb.Scanner) (id string, err error) { return id, row.Scan(&id) })
}

// DeleteSCIMToken deletes a company's SCIM token and returns its description.
func DeleteSCIMToken(ctx context.Context, tx *sqldb.Tx, companyID string) (SCIMToken, error) {
	t, err := scanSCIMToken(tx.QueryRow(ctx, `DELETE FROM scim_token WHERE company_id = $1 RETURNING `+scimTokenColumns, companyID))
	if errors.Is(err, sqldb.ErrNoRows) {
		return SCIMToken{}, errNoSCIMToken
	}
	return t, err
}

// scimTokenByHash returns the SCIM token with the given hash. Every request of
// an identity provider calls it.
func scimTokenByHash(ctx context.Context, db *sqldb.DB, hash string) (SCIMToken, error) {
	var stored string
	t, err := scanSCIMToken(db.QueryRow(ctx, `SELECT `+scimTokenColumns+`, hash FROM scim_token WHERE hash = $1`, hash), &stored)
	if errors.Is(err, sqldb.ErrNoRows) || err == nil && subtle.ConstantTimeCompare([]byte(hash), []byte(stored)) != 1 {
		return SCIMToken{}, ErrInvalid
	}
	t.hash = stored
	return t, err
}

func hasSCIMToken(ctx context.Context, tx *sqldb.Tx, companyID, hash string) (has bool, err error) {
	err = tx.QueryRow(ctx, `SELECT EXISTS (SELECT 1 FROM scim_token WHERE company_id = $1 AND hash = $2)`, companyID, hash).Scan(&has)
	return has, err
}

// TouchSCIMToken records the current time as the last use of a company's SCIM
// token.
func TouchSCIMToken(ctx context.Context, tx *sqldb.Tx, companyID string) error {
	_, err := tx.Exec(ctx, `UPDATE scim_token SET last_used = $2 WHERE company_id = $1`, companyID, sqldb.At(tx.Now))
	return err
}

// Checks are the invariants of this package's tables, as queries for the rows
// that violate them.
var Checks = []sqldb.Check{
	{Name: "no access token belongs to a deleted person", Query: `
		SELECT 'access_token ' || t.id FROM access_token t JOIN person p ON p.id = t.person_id WHERE p.deleted IS NOT NULL`},
	{Name: "access tokens are stored only as SHA-256", Query: `
		SELECT 'access_token ' || id FROM access_token WHERE length(hash) <> 64`},
	{Name: "SCIM tokens are stored only as SHA-256", Query: `
		SELECT 'scim_token ' || company_id FROM scim_token WHERE length(hash) <> 64`},
	{Name: "every access token belongs to a person", Query: `
		SELECT 'access_token ' || t.id FROM access_token t LEFT JOIN person p ON p.id = t.person_id WHERE p.id IS NULL`},
	{Name: "the access tokens of a company act for its members", Query: `
		SELECT 'access_token ' || t.id FROM access_token t WHERE t.company_id IS NOT NULL
			AND NOT EXISTS (SELECT 1 FROM company_member m WHERE m.company_id = t.company_id AND m.person_id = t.person_id)`},
}

// LastUsed returns, by person id, when people last used one of their access tokens.
// People without such a use are left out. There must be at least one id.
func LastUsed(ctx context.Context, tx *sqldb.Tx, personIDs []string) (map[string]sqldb.Time, error) {
	in, args := sqldb.In(personIDs)
	return sqldb.Map[string, sqldb.Time](ctx, tx, `
		SELECT person_id, max(last_used) FROM access_token WHERE person_id IN `+in+` AND last_used IS NOT NULL GROUP BY person_id`, args)
}
