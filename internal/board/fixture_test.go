package board_test

import (
	"errors"
	"math"
	"slices"
	"testing"
	"time"

	"atelier/internal/base/fault"
	"atelier/internal/base/pubsub"
	"atelier/internal/base/sqldb/dbtest"
	"atelier/internal/board"
	"atelier/internal/file/library"
	"atelier/internal/people/company"
	"atelier/internal/people/principal"
	"atelier/internal/run/generation"
	"atelier/internal/run/generation/generationtest"
	"atelier/internal/run/run"
)

// fixture is an installation with boards.
type fixture struct {
	*generationtest.Installation
	boards *board.Boards
}

func each(t *testing.T, fn func(w fixture)) {
	t.Helper()
	dbtest.EachFixture(t, slices.Concat(generationtest.Checks, board.Checks), func(dw dbtest.Fixture) {
		h := generationtest.New(dw, generationtest.Unlimited)
		fn(fixture{h, &board.Boards{DB: dw.DB, Hub: pubsub.New(), Keep: 30 * 24 * time.Hour}})
	})
}

func own(personID string) principal.Principal {
	return principal.Principal{PersonID: personID, AccountID: personID}
}

// manager is a manager of a team.
func manager(personID, teamID string) principal.Principal {
	return principal.Principal{
		PersonID:  personID,
		AccountID: teamID,
		TeamID:    teamID,
		Role:      company.TeamRole{Permissions: []company.Permission{company.ManageTeam}},
	}
}

func (w fixture) board(v principal.Principal) board.Board {
	w.Helper()
	b, err := w.boards.CreateBoard(w.Context(), v, "Board")
	w.OK(err)
	return b
}

// result creates a run with one result, and returns the ids of both.
func (w fixture) result(personID string) (item, runID string) {
	w.Helper()
	w.Create(w.Draft(generationtest.Own(personID), "free"))
	r := w.Claim("worker")
	w.OK(w.Runs.EndRun(w.Context(), r, generation.Outcome{State: run.Succeeded, Results: w.Results(1)}))
	all, err := w.Library.ListItems(w.Context(), principal.Principal{PersonID: personID, AccountID: personID}, library.Filter{}, nil, 1)
	w.OK(err)
	return all[0].ID, r.ID
}

func text(s string) board.Draft { return board.Draft{Kind: board.Text, Text: s} }

// add adds a node, later than all before.
func (w fixture) add(v principal.Principal, boardID string, d board.Draft) board.Node {
	w.Helper()
	w.Pass(time.Second)
	n, err := w.boards.AddNode(w.Context(), v, boardID, board.Match{}, d)
	w.OK(err)
	return n
}

// get reads a board with all its nodes.
func (w fixture) get(v principal.Principal, id string) (board.Board, []board.Node) {
	w.Helper()
	b, p, err := w.boards.GetBoard(w.Context(), v, id, nil, board.MaxNodes)
	if w.OK(err); p.More {
		w.Error("the board is longer than a page")
	}
	return b, p.Nodes
}

func (w fixture) refused(err error, code fault.Code, paths ...string) {
	w.Helper()
	f, ok := errors.AsType[*fault.Error](err)
	if !ok || f.Code != code {
		w.Errorf("error = %v, want %s", err, code)
		return
	}
	var got []string
	for _, p := range f.Fields {
		got = append(got, p.Path)
	}
	if !slices.Equal(got, paths) {
		w.Errorf("the problems are with %q, want %q", got, paths)
	}
}

func ptr[T any](v T) *T { return &v }

var nowhere = []float64{math.NaN(), math.Inf(1), math.Inf(-1), 1e9 + 1, -1e9 - 1, math.MaxFloat64}

var onePNG = generationtest.PNG(7)
