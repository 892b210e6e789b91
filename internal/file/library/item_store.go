package library

import (
	"context"
	"strings"
	"time"

	"atelier/internal/base/sqldb"
	"atelier/internal/people/principal"
)

// query builds an SQL query together with its arguments.
type query struct {
	text strings.Builder
	args sqldb.Args
}

func (q *query) appendText(parts ...string) {
	for _, p := range parts {
		q.text.WriteString(p)
	}
}

// selectItems begins the query for the items in the viewer's accounts. inputs
// is the SQL expression for the inputs of the run.
func selectItems(personID string, accountIDs []string, inputs string) *query {
	q := &query{}
	q.appendText(`
		SELECT r.id, r.account_id, r.tool_id, r.created, n.library_id, n.id, n.person_id, coalesce(n.team_id, ''), n.prompt, `, inputs, `,
			a.type, a.mime_type, coalesce(a.width, 0), coalesce(a.height, 0), coalesce(a.duration_ms, 0), a.size_bytes, a.sha256, a.blurhash,
			coalesce(t.slug, 'result'), a.blob, a.thumb, a.preview, a.gone IS NOT NULL, r.note, coalesce(n.parent_id, ''), `, stepName, `, r.intermediate, `, favoritedBy(q.args.Add(personID)), `
		FROM result r JOIN run n ON n.id = r.run_id JOIN asset a ON a.id = r.asset_id LEFT JOIN tool t ON t.id = r.tool_id
		WHERE r.deleted IS NULL AND r.account_id IN `, sqldb.AddList(&q.args, accountIDs))
	return q
}

// stepName is the SQL expression for the id of the step of a flow whose run n is,
// or an empty text.
const stepName = `CASE WHEN n.parent_id IS NULL THEN '' ELSE coalesce((SELECT s.step FROM flow_step s WHERE s.run_id = n.id AND s.flow_id = n.parent_id), '') END`

// favoritedBy returns the SQL condition that a person has marked the result r
// as a favorite. person is the placeholder of the person's ID. For EXISTS,
// PostgreSQL would read all favorites of the person for a page.
func favoritedBy(person string) string {
	return `coalesce((SELECT TRUE FROM favorite f WHERE f.person_id = ` + person + ` AND f.result_id = r.id), FALSE)`
}

func scanItem(row sqldb.Scanner) (i Item, err error) {
	var created sqldb.Time
	var ms int64
	var run, tool string
	var k Keys
	err = row.Scan(&i.ResultID, &i.AccountID, &i.ToolID, &created, &run, &i.RequestID, &i.PersonID, &i.TeamID, &i.Prompt, &i.Inputs,
		&i.Type, &i.MimeType, &i.Width, &i.Height, &ms, &i.Size, &i.SHA256, &i.Blurhash,
		&tool, &k.Blob, &k.Thumb, &k.Preview, &i.Expired, &i.Note, &i.FlowID, &i.Step, &i.Intermediate, &i.Favorited)
	i.Names = ResultNames(tool, i.ResultID, k)
	i.ID = run + ":" + i.ResultID
	i.Created = created.Time
	i.Duration = time.Duration(ms) * time.Millisecond
	return i, err
}

// appendFilter appends the conditions of a filter on the result r. personID is
// the person whose favorites count.
func (q *query) appendFilter(personID string, f Filter) {
	q.appendText(` AND r.type <> 'TEXT'`)
	if f.FlowID != "" {
		q.appendText(` AND r.run_id IN (SELECT s.run_id FROM flow_step s WHERE s.flow_id = `, q.args.Add(f.FlowID), `)`)
	} else {
		q.appendText(` AND NOT r.intermediate`)
	}
	if len(f.ToolIDs) > 0 {
		q.appendText(` AND r.tool_id IN `, sqldb.AddList(&q.args, f.ToolIDs))
	}
	if f.Type != "" {
		q.appendText(` AND r.type = `, q.args.Add(f.Type))
	}
	for _, word := range f.words() {
		q.appendText(` AND r.search_text LIKE `, q.args.Add("%"+escapeLike(word)+"%"), ` ESCAPE '\'`)
	}
	if f.AspectRatio != "" {
		q.appendText(` AND r.shape = `, q.args.Add(f.AspectRatio))
	}
	if f.Resolution != "" {
		q.appendText(` AND r.resolution = `, q.args.Add(f.Resolution))
	}
	if f.Favorited != nil {
		comparison := ` IN `
		if !*f.Favorited {
			comparison = ` NOT IN `
		}
		q.appendText(` AND r.id`, comparison, `(SELECT f.result_id FROM favorite f WHERE f.person_id = `, q.args.Add(personID), `)`)
	}
	if !f.From.IsZero() {
		q.appendText(` AND r.created >= `, q.args.Add(f.From.UnixMicro()))
	}
	if !f.Until.IsZero() {
		q.appendText(` AND r.created < `, q.args.Add(f.Until.UnixMicro()))
	}
}

// appendAfter appends the condition that the result r comes after a position in
// the order of the filter. It appends nothing if the position is nil.
func (q *query) appendAfter(f Filter, after *Cursor) {
	if after == nil {
		return
	}
	comparison := ` < `
	if f.OldestFirst {
		comparison = ` > `
	}
	q.appendText(` AND (r.created, r.id)`, comparison, `(`, q.args.Add(after.Created.UnixMicro()), `, `, q.args.Add(after.ID), `)`)
}

// sqlOrder returns the order of a list of results r.
func (f Filter) sqlOrder() string {
	if f.OldestFirst {
		return `r.created, r.id`
	}
	return `r.created DESC, r.id DESC`
}

// escapeLike escapes the characters in s that are special in a LIKE pattern
// with the escape character \.
func escapeLike(s string) string { return likeEscapes.Replace(s) }

var likeEscapes = strings.NewReplacer(`\`, `\\`, `%`, `\%`, `_`, `\_`)

// queryItems returns at most limit items of accounts in the order of the
// filter. after is the position before the first item, or nil.
func queryItems(ctx context.Context, tx *sqldb.Tx, personID string, accountIDs []string, f Filter, after *Cursor, limit int) ([]Item, error) {
	q := selectItems(personID, accountIDs, `''`)
	q.appendFilter(personID, f)
	q.appendAfter(f, after)
	q.appendText(` ORDER BY `, f.sqlOrder(), ` LIMIT `, q.args.Add(limit))
	return sqldb.All(ctx, tx, q.text.String(), q.args, scanItem)
}

func queryItem(ctx context.Context, tx *sqldb.Tx, p principal.Principal, run, result string) (Item, error) {
	q := selectItems(p.PersonID, p.AccountIDs(), `n.inputs`)
	q.appendText(` AND n.library_id = `, q.args.Add(run), ` AND r.id = `, q.args.Add(result))
	return scanItem(tx.QueryRow(ctx, q.text.String(), q.args...))
}

func setFavorite(ctx context.Context, tx *sqldb.Tx, personID, resultID string, on bool) error {
	if !on {
		_, err := tx.Exec(ctx, `DELETE FROM favorite WHERE person_id = $1 AND result_id = $2`, personID, resultID)
		return err
	}
	_, err := tx.Exec(ctx, `
		INSERT INTO favorite (person_id, result_id, created) VALUES ($1, $2, $3)
		ON CONFLICT (person_id, result_id) DO NOTHING`, personID, resultID, sqldb.At(tx.Now))
	return err
}

// deletedItem is a deleted result that can be restored.
type deletedItem struct {
	accountID, personID string
	assetID             string
}

// findDeleted returns a deleted result of the principal's accounts that can
// still be restored. It returns sqldb.ErrNoRows if there is none.
func findDeleted(ctx context.Context, tx *sqldb.Tx, p principal.Principal, run, result string) (d deletedItem, err error) {
	in, args := sqldb.In(p.AccountIDs(), run, result, sqldb.At(tx.Now))
	err = tx.QueryRow(ctx, `
		SELECT r.account_id, n.person_id, r.asset_id FROM result r JOIN run n ON n.id = r.run_id
		WHERE n.library_id = $1 AND r.id = $2 AND r.restorable_until > $3 AND r.account_id IN `+in, args...).Scan(&d.accountID, &d.personID, &d.assetID)
	return d, err
}

// restoreResult marks a deleted result as not deleted. It returns false if the
// result cannot be restored any more.
func restoreResult(ctx context.Context, tx *sqldb.Tx, id string) (bool, error) {
	return sqldb.Changed(ctx, tx, `UPDATE result SET deleted = NULL, restorable_until = NULL WHERE id = $1 AND restorable_until > $2`, id, sqldb.At(tx.Now))
}

// endRestoration makes a batch of deleted results final whose time to restore
// them is over, and returns their number.
func endRestoration(ctx context.Context, tx *sqldb.Tx) (int64, error) {
	return tx.Exec(ctx, `
		UPDATE result SET restorable_until = NULL, note = '' WHERE restorable_until <= $1 AND id IN (
			SELECT id FROM result WHERE restorable_until <= $1 ORDER BY restorable_until LIMIT $2)`, sqldb.At(tx.Now), sweepBatch)
}

// deleteResult marks a result as deleted and returns the ID of its file. If
// until is zero, the result cannot be restored, and its note is erased. It
// returns sqldb.ErrNoRows if the result is already deleted.
func deleteResult(ctx context.Context, tx *sqldb.Tx, id string, until time.Time) (assetID string, err error) {
	err = tx.QueryRow(ctx, `
		UPDATE result SET deleted = $2, restorable_until = $3, note = CASE WHEN CAST($3 AS BIGINT) IS NULL THEN '' ELSE note END
		WHERE id = $1 AND deleted IS NULL RETURNING asset_id`, id, sqldb.At(tx.Now), sqldb.At(until)).Scan(&assetID)
	return assetID, err
}

// deleteIntermediate marks the intermediate results of runs as deleted, and
// returns the IDs of their files.
func deleteIntermediate(ctx context.Context, tx *sqldb.Tx, runIDs []string) ([]string, error) {
	in, args := sqldb.In(runIDs, sqldb.At(tx.Now))
	return sqldb.All(ctx, tx, `UPDATE result SET deleted = $1, note = '' WHERE deleted IS NULL AND intermediate AND run_id IN `+in+` RETURNING asset_id`, args, scanOne[string])
}

// unsearchable is a result without a text for searching, and its prompt.
type unsearchable struct{ id, prompt string }

// unsearchableAfter returns a batch of results without a text for searching
// and with IDs above id, in ascending order.
func unsearchableAfter(ctx context.Context, tx *sqldb.Tx, id string) ([]unsearchable, error) {
	return sqldb.All(ctx, tx, `
		SELECT r.id, n.prompt FROM result r JOIN run n ON n.id = r.run_id
		WHERE r.search_text IS NULL AND r.id > $1 ORDER BY r.id LIMIT $2`,
		[]any{id, sweepBatch}, func(row sqldb.Scanner) (u unsearchable, err error) {
			err = row.Scan(&u.id, &u.prompt)
			return u, err
		})
}

// setSearchText stores the text for searching of a result that has none.
func setSearchText(ctx context.Context, tx *sqldb.Tx, id, text string) error {
	_, err := tx.Exec(ctx, `UPDATE result SET search_text = $2 WHERE id = $1 AND search_text IS NULL`, id, text)
	return err
}

// countItems returns the number of items of accounts that a filter selects and
// that come after a position, or of all if after is nil.
func countItems(ctx context.Context, tx *sqldb.Tx, personID string, accountIDs []string, f Filter, after *Cursor) (n int64, err error) {
	q := &query{}
	q.appendText(`SELECT count(*) FROM result r WHERE r.deleted IS NULL AND r.account_id IN `, sqldb.AddList(&q.args, accountIDs))
	q.appendFilter(personID, f)
	q.appendAfter(f, after)
	err = tx.QueryRow(ctx, q.text.String(), q.args...).Scan(&n)
	return n, err
}

// numberedItem is an item with its number in a list, from 0.
type numberedItem struct {
	index  int64
	cursor Cursor
}

// markedItems returns the first items of sections of a list, and the last item
// of each full section, in the order of the list. Sections have every items. It
// returns at most limit items.
func markedItems(ctx context.Context, tx *sqldb.Tx, personID string, accountIDs []string, f Filter, every, limit int64) ([]numberedItem, error) {
	q := &query{}
	q.appendText(`
		SELECT place - 1, created, id FROM (
			SELECT r.created, r.id, row_number() OVER (ORDER BY `, f.sqlOrder(), `) AS place
			FROM result r WHERE r.deleted IS NULL AND r.account_id IN `, sqldb.AddList(&q.args, accountIDs))
	q.appendFilter(personID, f)
	q.appendText(`) AS numbered WHERE place % `, q.args.Add(every), ` <= 1 ORDER BY place LIMIT `, q.args.Add(limit))
	return sqldb.All(ctx, tx, q.text.String(), q.args, func(row sqldb.Scanner) (n numberedItem, err error) {
		var created sqldb.Time
		err = row.Scan(&n.index, &created, &n.cursor.ID)
		n.cursor.Created = created.Time
		return n, err
	})
}
