package audit

import (
	"context"
	"errors"
	"math"
	"strconv"
	"strings"

	"atelier/internal/base/sqldb"
)

const headQuery = `SELECT seq, hash, seal FROM audit_head WHERE id = 1`

// lockHead locks the row with the head, so that one transaction at a time adds
// to the log, and returns the head and its seal.
func lockHead(ctx context.Context, tx *sqldb.Tx) (h Head, seal string, err error) {
	err = tx.QueryRow(ctx, headQuery+tx.Dialect.ForUpdate).Scan(&h.Seq, &h.Hash, &seal)
	return h, seal, err
}

// readEnds returns the head and its seal, or the zero Head if the head is
// missing, and the number of the newest row.
func readEnds(ctx context.Context, tx *sqldb.Tx) (h Head, seal string, newest int64, err error) {
	err = tx.QueryRow(ctx, headQuery).Scan(&h.Seq, &h.Hash, &seal)
	if err != nil && !errors.Is(err, sqldb.ErrNoRows) {
		return h, "", 0, err
	}
	newest, err = sqldb.One[int64](ctx, tx, `SELECT coalesce(max(seq), 0) FROM audit`)
	return h, seal, newest, err
}

// hasSeals reports whether any row of the log has a seal.
func hasSeals(ctx context.Context, tx *sqldb.Tx) (bool, error) {
	return sqldb.Exists(ctx, tx, `SELECT 1 FROM audit WHERE seal <> ''`)
}

// insertRow adds the row to the log. The caller must then update the head.
func insertRow(ctx context.Context, tx *sqldb.Tx, r row) error {
	_, err := tx.Exec(ctx, `
		INSERT INTO audit (seq, at, act, actor_id, person_id, company_id, address, details, hash, seal)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)`,
		r.seq, r.at, r.act, r.actorID, r.personID, r.companyID, r.address, r.details, r.hash, r.keyedSeal(tx))
	return err
}

// putHead stores the head and a new seal for it.
func putHead(ctx context.Context, tx *sqldb.Tx, h Head) error {
	_, err := tx.Exec(ctx, `UPDATE audit_head SET seq = $1, hash = $2, seal = $3 WHERE id = 1`, h.Seq, h.Hash, h.keyedSeal(tx))
	return err
}

// moveHead stores the head without renewing its seal, which was already wrong.
func moveHead(ctx context.Context, tx *sqldb.Tx, h Head) error {
	_, err := tx.Exec(ctx, `UPDATE audit_head SET seq = $1, hash = $2 WHERE id = 1`, h.Seq, h.Hash)
	return err
}

const columns = `seq, at, act, actor_id, person_id, company_id, address, details, hash, seal`

func scanRow(s sqldb.Scanner) (r row, err error) {
	err = s.Scan(&r.seq, &r.at, &r.act, &r.actorID, &r.personID, &r.companyID, &r.address, &r.details, &r.hash, &r.keyedHash)
	return r, err
}

// listRows returns the rows that match the filter, newest first. The query has
// conditions only for the fields of the filter that are set, so that the
// database can use indexes.
func listRows(ctx context.Context, tx *sqldb.Tx, f Filter) ([]row, error) {
	var args sqldb.Args
	query := f.query(&args)
	return sqldb.All(ctx, tx, query, args, scanRow)
}

// query returns the query for the rows that match the filter, newest first. If
// several persons or acts would match, it combines limited queries, of which
// each reads an index in the order of the list and ends after Limit rows.
func (f Filter) query(args *sqldb.Args) string {
	limit := ` ORDER BY seq DESC LIMIT ` + args.Add(int64(max(f.Limit, 0)))
	conditions := f.conditions(args)

	parts := []string{``}
	if f.PersonID != "" {
		one := args.Add(f.PersonID)
		parts = []string{` AND person_id = ` + one, ` AND actor_id = ` + one}
	}
	if len(f.Acts) > 0 && len(f.Acts) <= maxActParts && f.PersonID == "" && f.CompanyID == "" {
		parts = nil
		for _, act := range f.Acts {
			parts = append(parts, ` AND act = `+args.Add(string(act)))
		}
	} else if len(f.Acts) > 0 {
		conditions += ` AND act IN ` + sqldb.AddList(args, f.Acts)
	}

	for i, part := range parts {
		parts[i] = `SELECT ` + columns + ` FROM audit WHERE ` + conditions + part + limit
		if len(parts) > 1 {
			parts[i] = `SELECT ` + columns + ` FROM (` + parts[i] + `) AS part` + strconv.Itoa(i)
		}
	}
	if len(parts) == 1 {
		return parts[0]
	}
	return strings.Join(parts, ` UNION `) + limit
}

// maxActParts is the maximum number of acts that get a query of their own.
const maxActParts = 8

// conditions returns the SQL conditions for the fields of the filter other than
// the person and the acts.
func (f Filter) conditions(args *sqldb.Args) string {
	before := f.Before
	if before == 0 {
		before = math.MaxInt64
	}
	where := `seq < ` + args.Add(before)
	if f.CompanyID != "" {
		where += ` AND company_id = ` + args.Add(f.CompanyID)
	}
	if !f.From.IsZero() {
		where += ` AND at >= ` + args.Add(sqldb.At(f.From))
	}
	if !f.Until.IsZero() {
		where += ` AND at < ` + args.Add(sqldb.At(f.Until))
	}
	return where
}

// pageOfRows returns the rows with numbers above after and up to upTo, in
// ascending order, at most limit.
func pageOfRows(ctx context.Context, tx *sqldb.Tx, after, upTo int64, limit int) ([]row, error) {
	return sqldb.All(ctx, tx, `SELECT `+columns+` FROM audit WHERE seq > $1 AND seq <= $2 ORDER BY seq LIMIT $3`,
		[]any{after, upTo, int64(limit)}, scanRow)
}

// Checks are the invariants of the audit log that SQL can check. Verify checks
// the hashes.
var Checks = []sqldb.Check{
	{Name: "the audit log ends at its head", Query: `
		SELECT 'audit_head ' || CAST(h.seq AS TEXT) FROM audit_head h LEFT JOIN audit a ON a.seq = h.seq
		WHERE h.hash <> coalesce(a.hash, '') OR (h.seq > 0 AND a.seq IS NULL) OR EXISTS (SELECT 1 FROM audit n WHERE n.seq > h.seq)
		UNION ALL
		SELECT 'audit_head is missing' WHERE NOT EXISTS (SELECT 1 FROM audit_head)`},
	{Name: "the audit log has no gap", Query: `
		SELECT 'audit ' || CAST(a.seq AS TEXT) || ' follows nothing' FROM audit a LEFT JOIN audit b ON b.seq = a.seq - 1
		WHERE a.seq <> 1 AND b.seq IS NULL`},
}
