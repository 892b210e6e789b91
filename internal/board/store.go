package board

import (
	"context"
	"errors"
	"strings"
	"time"

	"atelier/internal/base/ids"
	"atelier/internal/base/sqldb"
	"atelier/internal/people/principal"
)

// Queries on the board table.

const columns = `id, account_id, person_id, name, revision, nodes, forgotten, created, updated, deleted`

func scanBoard(row sqldb.Scanner) (b Board, err error) {
	var created, updated, deleted sqldb.Time
	err = row.Scan(&b.ID, &b.AccountID, &b.PersonID, &b.Name, &b.Revision, &b.Nodes, &b.forgotten, &created, &updated, &deleted)
	b.Created = created.Time
	b.Updated = updated.Time
	b.Deleted = deleted.Time
	return b, err
}

// lockAccount makes transactions that add boards to an account wait for each
// other, and reports whether the account exists. The person is locked before
// the team, as in all other transactions, which prevents deadlocks. The team is
// locked by an update instead of SELECT FOR UPDATE, because the update does not
// block transactions that only insert references to the team.
func lockAccount(ctx context.Context, tx *sqldb.Tx, v principal.Principal) (exists bool, err error) {
	var id string
	err = tx.QueryRow(ctx, `SELECT id FROM person WHERE id = $1 AND deleted IS NULL`+tx.Dialect.ForUpdate, v.PersonID).Scan(&id)
	if errors.Is(err, sqldb.ErrNoRows) {
		return false, nil
	}
	if err != nil || v.AccountID == v.PersonID {
		return err == nil, err
	}
	n, err := tx.Exec(ctx, `UPDATE team SET removed = removed WHERE id = $1 AND NOT removed`, v.AccountID)
	return n == 1, err
}

func countBoards(ctx context.Context, tx *sqldb.Tx, accountID string) (n int64, err error) {
	err = tx.QueryRow(ctx, `SELECT count(*) FROM board WHERE account_id = $1 AND deleted IS NULL`, accountID).Scan(&n)
	return n, err
}

func insertBoard(ctx context.Context, tx *sqldb.Tx, b Board) error {
	_, err := tx.Exec(ctx, `
		INSERT INTO board (id, account_id, person_id, name, revision, nodes, forgotten, created, updated)
		VALUES ($1, $2, $3, $4, $5, 0, 0, $6, $6)`, b.ID, b.AccountID, b.PersonID, b.Name, b.Revision, sqldb.At(b.Created))
	return err
}

// List returns at most limit boards of an account, newest first, starting after
// the cursor. If trash is set, it returns only deleted boards, otherwise only
// boards that are not deleted.
func List(ctx context.Context, tx *sqldb.Tx, accountID string, trash bool, after *Cursor, limit int) ([]Board, error) {
	query := `SELECT ` + columns + ` FROM board WHERE account_id = $1 AND deleted IS NULL`
	if trash {
		query = `SELECT ` + columns + ` FROM board WHERE account_id = $1 AND deleted IS NOT NULL`
	}
	args := []any{accountID, limit}
	if after != nil {
		query += ` AND (created, id) < ($3, $4)`
		args = append(args, after.Created.UnixMicro(), after.ID)
	}
	return sqldb.All(ctx, tx, query+` ORDER BY created DESC, id DESC LIMIT $2`, args, scanBoard)
}

func byID(ctx context.Context, tx *sqldb.Tx, accountID, id string) (Board, error) {
	return scanBoard(tx.QueryRow(ctx, `SELECT `+columns+` FROM board WHERE id = $1 AND account_id = $2`, id, accountID))
}

func readRevision(ctx context.Context, db *sqldb.DB, accountID, id string) (n int64, err error) {
	err = db.QueryRow(ctx, `SELECT revision FROM board WHERE id = $1 AND account_id = $2 AND deleted IS NULL`, id, accountID).Scan(&n)
	return n, err
}

// readRevisions returns the revisions of boards by board id. Deleted boards and
// unknown ids are left out.
func readRevisions(ctx context.Context, tx *sqldb.Tx, boardIDs []string) (map[string]int64, error) {
	in, args := sqldb.In(boardIDs)
	all := make(map[string]int64, len(boardIDs))
	err := tx.EachRow(ctx, `SELECT id, revision FROM board WHERE deleted IS NULL AND id IN `+in, args, func(row sqldb.Scanner) error {
		var id string
		var revision int64
		err := row.Scan(&id, &revision)
		all[id] = revision
		return err
	})
	return all, err
}

// lockBoard locks the row of a board that is not deleted and returns the board,
// or sqldb.ErrNoRows if m does not allow the current revision.
func lockBoard(ctx context.Context, tx *sqldb.Tx, accountID, id string, m Match) (Board, error) {
	query := `SELECT ` + columns + ` FROM board WHERE id = $1 AND account_id = $2 AND deleted IS NULL`
	args := []any{id, accountID}
	if m.Strict {
		var in string
		in, args = sqldb.In(m.Revisions, args...)
		query += ` AND revision IN ` + in
	}
	return scanBoard(tx.QueryRow(ctx, query+tx.Dialect.ForUpdate, args...))
}

// updateBoard stores a board that lockBoard has locked.
//
// A transaction must call updateBoard only once. If PostgreSQL updates a row a
// second time, it checks the foreign keys of the row again and waits for the
// lock of the board's creator, who may be waiting for the board.
func updateBoard(ctx context.Context, tx *sqldb.Tx, b Board) error {
	_, err := tx.Exec(ctx, `UPDATE board SET name = $2, revision = $3, nodes = $4, updated = $5, deleted = $6 WHERE id = $1`,
		b.ID, b.Name, b.Revision, b.Nodes, sqldb.At(b.Updated), sqldb.At(b.Deleted))
	return err
}

// restoreBoard takes a board out of the trash. It does nothing if the board is
// no longer in the trash.
func restoreBoard(ctx context.Context, tx *sqldb.Tx, b Board) error {
	_, err := tx.Exec(ctx, `
		UPDATE board SET deleted = NULL, revision = revision + 1, updated = $3 WHERE id = $1 AND account_id = $2 AND deleted IS NOT NULL`,
		b.ID, b.AccountID, sqldb.At(tx.Now))
	return err
}

// lockSome returns the ids of at most limit boards of an account and locks
// their rows, so that no nodes are added while the boards are deleted.
func lockSome(ctx context.Context, tx *sqldb.Tx, accountID string, limit int) ([]string, error) {
	return sqldb.All(ctx, tx, `SELECT id FROM board WHERE account_id = $1 ORDER BY id LIMIT $2`+tx.Dialect.ForUpdate, []any{accountID, int64(limit)}, sqldb.Column[string])
}

// removeBoard permanently deletes a board and its nodes. The caller has locked
// the row of the board.
func removeBoard(ctx context.Context, tx *sqldb.Tx, id string) error {
	for _, table := range []string{"board_presence", "board_node"} {
		if _, err := tx.Exec(ctx, `DELETE FROM `+table+` WHERE board_id = $1`, id); err != nil {
			return err
		}
	}
	_, err := tx.Exec(ctx, `DELETE FROM board WHERE id = $1`, id)
	return err
}

// oldestDeleted finds the board that was deleted first. If it was deleted
// before the given time, oldestDeleted locks its row and returns its id.
// Otherwise it returns "".
func oldestDeleted(ctx context.Context, tx *sqldb.Tx, before time.Time) (id string, err error) {
	err = tx.QueryRow(ctx, `SELECT id FROM board WHERE deleted IS NOT NULL AND deleted < $1 ORDER BY deleted LIMIT 1`+tx.Dialect.SkipLocked, before.UnixMicro()).Scan(&id)
	if errors.Is(err, sqldb.ErrNoRows) {
		return "", nil
	}
	return id, err
}

// Queries on the board_node table.

const nodeColumns = `id, kind, ref, text, x, y, width, height, z, revision, person_id, created, deleted`

func scanNode(row sqldb.Scanner) (n Node, err error) {
	var created, deleted sqldb.Time
	err = row.Scan(&n.ID, &n.Kind, &n.Ref, &n.Text, &n.Box.X, &n.Box.Y, &n.Box.Width, &n.Box.Height, &n.Z, &n.Revision, &n.PersonID, &created, &deleted)
	n.Created = created.Time
	n.Deleted = deleted.Time
	return n, err
}

// pageOf reads nodes until it has limit nodes or their texts reach the given
// number of bytes. The query may return one row more than limit. This row only
// shows that more nodes follow.
func pageOf(ctx context.Context, tx *sqldb.Tx, query string, args []any, limit, bytes int) (p Page, err error) {
	enough := errors.New("the page is full")
	err = tx.EachRow(ctx, query, args, func(row sqldb.Scanner) error {
		if p.More = len(p.Nodes) == limit || bytes <= 0; p.More {
			return enough
		}
		n, err := scanNode(row)
		p.Nodes = append(p.Nodes, n)
		bytes = bytes - len(n.Text)
		return err
	})
	if p.More {
		err = nil
	}
	return p, err
}

func nodesAfter(ctx context.Context, tx *sqldb.Tx, boardID string, after *Cursor, limit int) (Page, error) {
	query := `SELECT ` + nodeColumns + ` FROM board_node WHERE board_id = $1 AND deleted IS NULL`
	args := []any{boardID, limit + 1}
	if after != nil {
		query += ` AND (created, id) > ($3, $4)`
		args = append(args, after.Created.UnixMicro(), after.ID)
	}
	return pageOf(ctx, tx, query+` ORDER BY created, id LIMIT $2`, args, limit, pageText)
}

// nodesSince returns at most limit nodes that have changed since a mark, in the
// order of their revisions, including deleted nodes.
func nodesSince(ctx context.Context, tx *sqldb.Tx, boardID string, m Mark, limit int) (Page, error) {
	return pageOf(ctx, tx, `
		SELECT `+nodeColumns+` FROM board_node WHERE board_id = $1 AND (revision, id) > ($2, $3) ORDER BY revision, id LIMIT $4`,
		[]any{boardID, m.After, m.AfterID, limit + 1}, limit, pageText)
}

// nodesByID returns the nodes of a board with the given ids. Deleted nodes and
// unknown ids are left out.
func nodesByID(ctx context.Context, tx *sqldb.Tx, boardID string, nodeIDs []string) (map[string]Node, error) {
	var valid []string
	for _, id := range nodeIDs {
		if ids.Valid(id) {
			valid = append(valid, id)
		}
	}
	if len(valid) == 0 {
		return nil, nil
	}
	in, args := sqldb.In(valid, boardID)
	found, err := pageOf(ctx, tx, `SELECT `+nodeColumns+` FROM board_node WHERE board_id = $1 AND deleted IS NULL AND id IN `+in, args, len(valid), changeText)
	if found.More {
		return nil, errTooMuch
	}
	all := make(map[string]Node, len(found.Nodes))
	for _, n := range found.Nodes {
		all[n.ID] = n
	}
	return all, err
}

// highestZ returns the highest z of the nodes of a board, or -1 if it has none.
func highestZ(ctx context.Context, tx *sqldb.Tx, boardID string) (z int64, err error) {
	err = tx.QueryRow(ctx, `SELECT coalesce(max(z), -1) FROM board_node WHERE board_id = $1 AND deleted IS NULL`, boardID).Scan(&z)
	return z, err
}

// putSizes are the numbers of nodes that one statement can write, largest
// first. Large batches need few statements, and fixed sizes keep the number of
// different statements small.
var putSizes = []int{100, 10, 1}

// putNodes inserts nodes into the database, or replaces them if they exist.
func putNodes(ctx context.Context, tx *sqldb.Tx, boardID string, nodes []Node) error {
	for _, size := range putSizes {
		for len(nodes) >= size {
			if err := putSome(ctx, tx, boardID, nodes[:size]); err != nil {
				return err
			}
			nodes = nodes[size:]
		}
	}
	return nil
}

func putSome(ctx context.Context, tx *sqldb.Tx, boardID string, nodes []Node) error {
	var rows strings.Builder
	args := sqldb.Args{boardID}
	for i, n := range nodes {
		rows.WriteString([]string{`, ($1`, `($1`}[min(i, 1)^1])
		for _, v := range []any{n.ID, string(n.Kind), n.Ref, n.Text, n.Box.X, n.Box.Y, n.Box.Width, n.Box.Height, n.Z, n.Revision, n.PersonID, sqldb.At(n.Created), sqldb.At(n.Deleted)} {
			rows.WriteString(`, ` + args.Add(v))
		}
		rows.WriteString(`)`)
	}
	_, err := tx.Exec(ctx, `
		INSERT INTO board_node (board_id, `+nodeColumns+`) VALUES `+rows.String()+`
		ON CONFLICT (board_id, id) DO UPDATE SET ref = excluded.ref, text = excluded.text, x = excluded.x, y = excluded.y, width = excluded.width,
			height = excluded.height, z = excluded.z, revision = excluded.revision, person_id = excluded.person_id, deleted = excluded.deleted`, args...)
	return err
}

// oldestTombstone finds the node that was deleted first. If it was deleted
// before the given time, oldestTombstone returns the id of its board. Otherwise
// it returns "".
func oldestTombstone(ctx context.Context, tx *sqldb.Tx, before time.Time) (boardID string, err error) {
	err = tx.QueryRow(ctx, `SELECT board_id FROM board_node WHERE deleted IS NOT NULL AND deleted < $1 ORDER BY deleted LIMIT 1`, before.UnixMicro()).Scan(&boardID)
	if errors.Is(err, sqldb.ErrNoRows) {
		return "", nil
	}
	return boardID, err
}

// tombstonesUpTo returns the revision up to which the rows of about n deleted
// nodes of a board can be removed. It returns 0 if another instance of the
// server has already removed them.
func tombstonesUpTo(ctx context.Context, tx *sqldb.Tx, boardID string, before time.Time, n int) (revision int64, err error) {
	err = tx.QueryRow(ctx, `
		SELECT coalesce(max(t.revision), 0) FROM (
			SELECT revision FROM board_node WHERE board_id = $1 AND deleted IS NOT NULL AND deleted < $2 ORDER BY revision LIMIT $3) AS t`,
		boardID, before.UnixMicro(), n).Scan(&revision)
	return revision, err
}

func setForgotten(ctx context.Context, tx *sqldb.Tx, boardID string, revision int64) error {
	_, err := tx.Exec(ctx, `UPDATE board SET forgotten = $2 WHERE id = $1 AND forgotten < $2`, boardID, revision)
	return err
}

func removeTombstones(ctx context.Context, tx *sqldb.Tx, boardID string, revision int64) error {
	_, err := tx.Exec(ctx, `DELETE FROM board_node WHERE board_id = $1 AND deleted IS NOT NULL AND revision <= $2`, boardID, revision)
	return err
}

// Checks are SQL queries for violated invariants of boards and their nodes.
var Checks = []sqldb.Check{
	{Name: "a board belongs to a person or a team", Query: `
		SELECT 'board ' || b.id FROM board b
		WHERE NOT EXISTS (SELECT 1 FROM person p WHERE p.id = b.account_id) AND NOT EXISTS (SELECT 1 FROM team t WHERE t.id = b.account_id)`},
	{Name: "a personal board was created by its owner", Query: `
		SELECT 'board ' || b.id FROM board b JOIN person p ON p.id = b.account_id WHERE b.person_id <> b.account_id`},
	{Name: "a board has the right number of nodes", Query: `
		SELECT 'board ' || b.id FROM board b
		WHERE b.nodes <> (SELECT count(*) FROM board_node n WHERE n.board_id = b.id AND n.deleted IS NULL)`},
	{Name: "the oldest revision that a board remembers exists", Query: `
		SELECT 'board ' || id FROM board WHERE forgotten < 0 OR forgotten > revision`},
	{Name: "the revision of a node is a revision of its board", Query: `
		SELECT 'node ' || n.id FROM board_node n JOIN board b ON b.id = n.board_id WHERE n.revision < 2 OR n.revision > b.revision`},
	{Name: "a deleted node has no content", Query: `
		SELECT 'node ' || id FROM board_node
		WHERE deleted IS NOT NULL AND (ref <> '' OR text <> '' OR x <> 0 OR y <> 0 OR width <> 0 OR height <> 0 OR z <> 0)`},
	{Name: "a text node has no reference, every other node has one", Query: `
		SELECT 'node ' || id FROM board_node WHERE deleted IS NULL AND (kind = 'TEXT') <> (ref = '')`},
	{Name: "the size, position and text of a node are within the limits", Query: `
		SELECT 'node ' || id FROM board_node
		WHERE NOT (x BETWEEN -1e9 AND 1e9 AND y BETWEEN -1e9 AND 1e9 AND width BETWEEN 0 AND 1e9 AND height BETWEEN 0 AND 1e9 AND z BETWEEN -1000000000 AND 1000000000)
			OR length(text) > 10000`},
	{Name: "a node refers only to items of its own account", Query: `
		SELECT 'node ' || n.id FROM board_node n JOIN board b ON b.id = n.board_id
		LEFT JOIN upload u ON n.kind = 'UPLOAD_REF' AND u.id = n.ref
		LEFT JOIN run g ON n.kind = 'GENERATION' AND g.id = n.ref
		LEFT JOIN result r ON n.kind = 'LIBRARY_REF' AND r.id = substr(n.ref, 22)
		WHERE u.account_id <> b.account_id OR g.account_id <> b.account_id OR r.account_id <> b.account_id`},
}
