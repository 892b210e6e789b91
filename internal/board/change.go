package board

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"atelier/internal/base/fault"
	"atelier/internal/base/ids"
	"atelier/internal/base/sqldb"
	"atelier/internal/people/principal"
)

// MaxChanges is the maximum number of nodes that one request can change.
const MaxChanges = 1000

// Changes are the requested changes to the nodes of a board.
type Changes struct {
	Create []Draft
	Update []Update
	Delete []string
}

// ChangeResult is the result of Changes. Its lists are in the order of the
// request.
type ChangeResult struct {
	Revision         int64 // revision of the board after the change
	Created, Updated []Node
	Deleted          []string
}

// errNoNode is returned for deleted nodes and for nodes that do not exist.
var errNoNode = fault.New(fault.NotFound, "There is no such node on this board.")

var errTooMuch = fault.New(fault.Invalid, "The texts of these nodes are too long for one request. Change fewer nodes at once.").On("body")

// ChangeNodes adds, changes and deletes nodes of a board in one transaction.
func (bs *Boards) ChangeNodes(ctx context.Context, v principal.Principal, boardID string, m Match, c Changes) (ChangeResult, error) {
	if n := len(c.Create) + len(c.Update) + len(c.Delete); n < 1 || n > MaxChanges {
		return ChangeResult{}, fault.New(fault.Invalid, fmt.Sprintf("A request must change 1 to %d nodes.", MaxChanges)).On("body")
	}
	return bs.changeNodes(ctx, v, boardID, m, c, false)
}

// AddNode adds a node to a board. The revision of the returned node is the new
// revision of the board.
func (bs *Boards) AddNode(ctx context.Context, v principal.Principal, boardID string, m Match, d Draft) (Node, error) {
	done, err := bs.changeNodes(ctx, v, boardID, m, Changes{Create: []Draft{d}}, true)
	if err != nil {
		return Node{}, err
	}
	return done.Created[0], nil
}

// SetNode changes a node of a board and returns the changed node.
func (bs *Boards) SetNode(ctx context.Context, v principal.Principal, boardID string, m Match, u Update) (Node, error) {
	done, err := bs.changeNodes(ctx, v, boardID, m, Changes{Update: []Update{u}}, true)
	if err != nil {
		return Node{}, err
	}
	return done.Updated[0], nil
}

// RemoveNode deletes a node of a board and returns the new revision of the
// board.
func (bs *Boards) RemoveNode(ctx context.Context, v principal.Principal, boardID string, m Match, nodeID string) (revision int64, err error) {
	done, err := bs.changeNodes(ctx, v, boardID, m, Changes{Delete: []string{nodeID}}, true)
	return done.Revision, err
}

func (bs *Boards) changeNodes(ctx context.Context, v principal.Principal, boardID string, m Match, c Changes, single bool) (done ChangeResult, err error) {
	err = bs.DB.Write(ctx, func(tx *sqldb.Tx) error {
		b, err := bs.takeRevision(ctx, tx, v, boardID, m)
		if err != nil {
			return err
		}
		w := &changeWriter{
			tx:       tx,
			board:    b,
			personID: v.PersonID,
			changes:  c,
			single:   single,
		}
		done, err = w.applyChanges(ctx)
		return err
	})
	if err != nil {
		return ChangeResult{}, err
	}
	return done, nil
}

// changeWriter applies changes in the transaction that has locked the board.
type changeWriter struct {
	tx       *sqldb.Tx
	board    Board
	personID string // the person who makes the changes
	changes  Changes
	single   bool // the request changes one node, whose id is in the URL path

	problems []fault.Field
	put      []Node // new nodes, then changed nodes
	gone     []Node
}

// pathOf returns the path of a field of the request for error messages, such as
// "create.3.text". In requests about a single node it is the name of the field.
func (w *changeWriter) pathOf(list string, i int, field string) string {
	switch {
	case w.single && field == "":
		return "body"
	case w.single:
		return field
	case field == "":
		return list + "." + strconv.Itoa(i)
	}
	return list + "." + strconv.Itoa(i) + "." + field
}

func (w *changeWriter) addProblem(path, message string) {
	w.problems = append(w.problems, fault.Field{Path: path, Message: message})
}

func (w *changeWriter) applyChanges(ctx context.Context) (ChangeResult, error) {
	w.createNodes()
	if err := w.alterNodes(ctx); err != nil {
		return ChangeResult{}, err
	}
	if w.board.Nodes+int64(len(w.changes.Create)-len(w.gone)) > MaxNodes {
		w.addProblem("body", "A board can have at most 5,000 nodes.")
	}
	if err := w.resolveRefs(ctx); err != nil {
		return ChangeResult{}, err
	}
	if len(w.problems) > 0 {
		f := fault.New(fault.Invalid, "The changes are invalid.")
		if w.single {
			f = fault.New(fault.Invalid, "The node is invalid.")
		}
		f.Fields = w.problems
		return ChangeResult{}, f
	}
	created := w.put[:len(w.changes.Create):len(w.changes.Create)]
	updated := w.put[len(w.changes.Create):]
	if err := w.storeNodes(ctx, created, updated); err != nil {
		return ChangeResult{}, err
	}
	return ChangeResult{Revision: w.board.Revision, Created: created, Updated: updated, Deleted: w.changes.Delete}, nil
}

// createNodes prepares the nodes to add. Each is created one microsecond after
// the previous one, because lists are sorted by creation time and must keep the
// order of the request.
func (w *changeWriter) createNodes() {
	for i, d := range w.changes.Create {
		n := Node{
			ID:       ids.New(),
			Kind:     d.Kind,
			Ref:      d.Ref,
			Text:     d.Text,
			Box:      d.Box,
			Revision: w.board.Revision,
			PersonID: w.personID,
			Created:  w.tx.Now.Add(time.Duration(i) * time.Microsecond),
		}
		setIfGiven(&n.Z, d.Z)
		n.checkValues(func(field, message string) { w.addProblem(w.pathOf("create", i, field), message) })
		w.put = append(w.put, n)
	}
}

// alterNodes prepares the nodes to update and to delete.
func (w *changeWriter) alterNodes(ctx context.Context) error {
	var ids []string
	for _, u := range w.changes.Update {
		ids = append(ids, u.ID)
	}
	ids = append(ids, w.changes.Delete...)
	there, err := nodesByID(ctx, w.tx, w.board.ID, ids)
	if err != nil {
		return err
	}
	named := map[string]bool{}
	find := func(id, path string) (n Node, ok bool) {
		n, ok = there[id]
		switch {
		case named[id]:
			w.addProblem(path, "This node occurs twice in the request.")
			return n, false
		case !ok:
			w.addProblem(path, "There is no such node on this board.")
		}
		named[id] = true
		return n, ok
	}
	for i, u := range w.changes.Update {
		if u.Change == (Change{}) {
			w.addProblem(w.pathOf("update", i, ""), "At least one field to change is required.")
		}
		n, ok := find(u.ID, w.pathOf("update", i, "id"))
		if w.single && !ok {
			return errNoNode
		}
		if ok {
			u.applyTo(&n)
			n.Revision = w.board.Revision
			n.PersonID = w.personID
			n.checkValues(func(field, message string) { w.addProblem(w.pathOf("update", i, field), message) })
		}
		w.put = append(w.put, n)
	}
	for i, id := range w.changes.Delete {
		n, ok := find(id, w.pathOf("delete", i, ""))
		if w.single && !ok {
			return errNoNode
		}
		if ok {
			w.gone = append(w.gone, Node{
				ID:       n.ID,
				Kind:     n.Kind,
				Created:  n.Created,
				Revision: w.board.Revision,
				PersonID: w.personID,
				Deleted:  w.tx.Now,
			})
		}
	}
	return nil
}

// resolveRefs looks up the uploads, results and runs that the nodes refer to. A
// new reference to an item that does not exist is reported as a problem. The
// item of an existing reference may have been deleted.
func (w *changeWriter) resolveRefs(ctx context.Context) error {
	if err := showRefs(ctx, w.tx, w.board.AccountID, w.put); err != nil {
		return err
	}
	const message = "The account has no item with this id."
	for i, d := range w.changes.Create {
		if w.put[i].Missing && d.Ref != "" {
			w.addProblem(w.pathOf("create", i, "ref"), message)
		}
	}
	for i, u := range w.changes.Update {
		if n := w.put[len(w.changes.Create)+i]; n.Missing && u.Ref != nil && *u.Ref != "" && n.ID != "" {
			w.addProblem(w.pathOf("update", i, "ref"), message)
		}
	}
	return nil
}

// storeNodes writes all changes to the database. New nodes are written last, so
// that they can be placed above all remaining nodes.
func (w *changeWriter) storeNodes(ctx context.Context, created, updated []Node) error {
	if err := putNodes(ctx, w.tx, w.board.ID, updated); err != nil {
		return err
	}
	if err := putNodes(ctx, w.tx, w.board.ID, w.gone); err != nil {
		return err
	}
	if len(created) > 0 {
		if err := w.stackNodes(ctx, created); err != nil {
			return err
		}
		if err := putNodes(ctx, w.tx, w.board.ID, created); err != nil {
			return err
		}
	}
	w.board.Nodes += int64(len(created) - len(w.gone))
	return updateBoard(ctx, w.tx, w.board)
}

// stackNodes sets the z (the stacking order) of new nodes without a z, so that
// they are displayed above all other nodes.
func (w *changeWriter) stackNodes(ctx context.Context, created []Node) error {
	top, err := highestZ(ctx, w.tx, w.board.ID)
	for i, d := range w.changes.Create {
		if d.Z == nil {
			created[i].Z = min(top+1, far)
		}
		top = max(top, created[i].Z)
	}
	return err
}
