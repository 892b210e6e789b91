package board

import (
	"context"
	"math"
	"strings"
	"time"
	"unicode/utf8"

	"atelier/internal/base/sqldb"
	"atelier/internal/file/library"
	"atelier/internal/run/run"
)

// Kind is the kind of a node: it shows a text, an upload, a result or a run.
type Kind string

// The kinds of nodes.
const (
	Result     Kind = library.LibraryRef
	Upload     Kind = library.UploadRef
	Text       Kind = "TEXT"
	Generation Kind = "GENERATION"
)

const (
	// maxText is the maximum length of the text of a node, in characters.
	maxText = 10_000
	// pageText is the total size of the texts, in bytes, at which a page of
	// nodes ends. The last text may exceed the limit. Pages are limited because
	// the server keeps many of them in memory at the same time, and clients
	// with slow connections must be able to receive them.
	pageText = 1 << 20
	// changeText is the maximum total size, in bytes, of the stored texts of
	// the nodes that one request changes.
	changeText = 4 << 20
	// far is the maximum absolute value of a coordinate, a size or a z
	// (stacking order).
	far = 1_000_000_000
)

// Box is the position and the size of a node on its board.
type Box struct {
	X, Y, Width, Height float64
}

// Node is an item on a board: a text, an upload, a result or a run.
type Node struct {
	ID      string
	Kind    Kind
	Ref     string // id of a library item, an upload or a run; "" for texts
	Text    string
	Box     Box
	Z       int64
	Created time.Time
	// Revision is the revision of the board when the node last changed.
	Revision int64
	PersonID string    // the person who added the node or changed it last; "" if an older release stored the change
	Deleted  time.Time // zero if the node is not deleted

	// The following fields are not stored with the node. They are looked up
	// whenever a node is read.
	Missing bool                    // the upload, result or run that the node refers to was deleted
	Item    *library.ReferencedFile // set for results and uploads
	Status  string                  // set for runs
}

// Draft is a node to add.
type Draft struct {
	Kind Kind
	Ref  string
	Text string
	Box  Box
	Z    *int64 // if nil, the node is added above all others
}

// Change is the new values of the fields of a node. Nil fields stay unchanged.
type Change struct {
	Ref, Text           *string
	X, Y, Width, Height *float64
	Z                   *int64
}

// Update is a Change of the node with the given id.
type Update struct {
	ID string
	Change
}

// applyTo sets the fields of n that the change contains.
func (c Change) applyTo(n *Node) {
	setIfGiven(&n.Ref, c.Ref)
	setIfGiven(&n.Text, c.Text)
	setIfGiven(&n.Box.X, c.X)
	setIfGiven(&n.Box.Y, c.Y)
	setIfGiven(&n.Box.Width, c.Width)
	setIfGiven(&n.Box.Height, c.Height)
	setIfGiven(&n.Z, c.Z)
}

func setIfGiven[T any](to, from *T) {
	if from != nil {
		*to = *from
	}
}

// checkValues calls problem for each field of the node with an invalid value.
// It does not check whether the upload, result or run exists.
func (n *Node) checkValues(problem func(field, message string)) {
	switch n.Kind {
	case Text:
		if n.Ref != "" {
			problem("ref", "A TEXT node must not have a reference.")
		}
	case Result, Upload, Generation:
		if n.Ref == "" {
			problem("ref", "A reference is required: the id of the item that the node shows.")
		}
	default:
		problem("kind", "Must be LIBRARY_REF, UPLOAD_REF, TEXT or GENERATION.")
	}
	if utf8.RuneCountInString(n.Text) > maxText {
		problem("text", "Must have at most 10,000 characters.")
	} else if !plainText(n.Text) {
		problem("text", "Must be UTF-8 without NUL characters.")
	}
	for _, at := range []struct {
		field string
		value *float64
		least float64
	}{{"x", &n.Box.X, -far}, {"y", &n.Box.Y, -far}, {"width", &n.Box.Width, 0}, {"height", &n.Box.Height, 0}} {
		if v := *at.value; math.IsNaN(v) || v < at.least || v > far {
			problem(at.field, map[bool]string{true: "Must be a number from 0 to 1,000,000,000.", false: "Must be a number from -1,000,000,000 to 1,000,000,000."}[at.least == 0])
		} else if v == 0 {
			*at.value = 0 // removes the sign of -0, because some databases do not store it
		}
	}
	if n.Z < -far || n.Z > far {
		problem("z", "Must be a whole number from -1,000,000,000 to 1,000,000,000.")
	}
}

// plainText reports whether both PostgreSQL and SQLite can store s as text.
func plainText(s string) bool { return utf8.ValidString(s) && !strings.ContainsRune(s, 0) }

// showRefs looks up the uploads, results and runs that nodes refer to, and sets
// the Missing, Item and Status fields of the nodes.
func showRefs(ctx context.Context, tx *sqldb.Tx, accountID string, nodes []Node) error {
	refs := map[Kind][]string{}
	for _, n := range nodes {
		if n.Ref != "" && plainText(n.Ref) {
			refs[n.Kind] = append(refs[n.Kind], n.Ref)
		}
	}
	items := map[Kind]map[string]library.ReferencedFile{}
	for _, kind := range []Kind{Result, Upload} {
		if len(refs[kind]) == 0 {
			continue
		}
		some, err := library.DescribeReferences(ctx, tx, accountID, string(kind), refs[kind])
		if err != nil {
			return err
		}
		items[kind] = some
	}
	statuses, err := run.Statuses(ctx, tx, accountID, refs[Generation])
	if err != nil {
		return err
	}
	for i := range nodes {
		n := &nodes[i]
		switch n.Kind {
		case Generation:
			n.Status = statuses[n.Ref]
			n.Missing = n.Status == ""
		case Result, Upload:
			item, ok := items[n.Kind][n.Ref]
			if n.Missing = !ok; ok {
				n.Item = &item
			}
		case Text: // a text node has no reference
		}
	}
	return nil
}
