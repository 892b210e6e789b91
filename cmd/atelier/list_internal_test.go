package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"atelier/internal/base/sqldb"
	"atelier/internal/base/sqldb/dbtest"
)

// TestListAll prints a list that is longer than what is read at once: every row
// once, and never many of them in memory.
func TestListAll(t *testing.T) {
	t.Parallel()
	const length = 2*rowsPerRead + 7
	db := dbtest.Open(t, dbtest.URL(t, "sqlite"))
	numbers := pagedList[int]{
		name:    "numbers",
		columns: []string{"NUMBER"},
		read: func(_ context.Context, _ *sqldb.Tx, cursor string, limit int) (rows []int, err error) {
			if limit > rowsPerRead+1 {
				t.Errorf("%d rows were asked for at once", limit)
			}
			after, _ := strconv.Atoi(cursor) // 0 at the beginning
			for n := after + 1; n <= length && len(rows) < limit; n++ {
				rows = append(rows, n)
			}
			return rows, nil
		},
		cursorOf: strconv.Itoa,
		cells:    func(n int) []string { return []string{strconv.Itoa(n)} },
	}
	two := 2
	for _, f := range []struct {
		flags pageFlags
		first int
		last  int
		next  string
	}{
		{pageFlags{All: true}, 1, length, ""},
		{pageFlags{All: true, Cursor: "1000"}, 1001, length, ""},
		{pageFlags{Limit: &two}, 1, 2, "2"},
		{pageFlags{Limit: &two, Cursor: strconv.Itoa(length - 2)}, length - 1, length, ""},
		{pageFlags{}, 1, defaultRows, strconv.Itoa(defaultRows)},
		{pageFlags{Cursor: strconv.Itoa(length)}, length + 1, length, ""},
	} {
		for _, asJSON := range []bool{true, false} {
			var stdout, stderr bytes.Buffer
			p := &program{installation: installation{streams: streams{stdout: &stdout, stderr: &stderr}}}
			if err := numbers.printPages(t.Context(), p, db, asJSON, f.flags); err != nil {
				t.Fatal(err)
			}
			var want strings.Builder
			if !asJSON {
				want.WriteString("NUMBER\n")
				for n := f.first; n <= f.last; n++ {
					fmt.Fprintln(&want, n)
				}
				if stdout.String() != want.String() || strings.Contains(stderr.String(), strconv.Quote(f.next)) != (f.next != "") {
					t.Errorf("%+v: %.200q and %q", f.flags, stdout.String(), stderr.String())
				}
				continue
			}
			var got struct {
				Numbers []int
				Next    string `json:"next_cursor"`
			}
			if err := json.Unmarshal(stdout.Bytes(), &got); err != nil || got.Next != f.next || len(got.Numbers) != f.last-f.first+1 {
				t.Fatalf("%+v: %v, %d numbers, then %q", f.flags, err, len(got.Numbers), got.Next)
			}
			for i, n := range got.Numbers {
				if n != f.first+i {
					t.Fatalf("%+v: number %d is %d", f.flags, i, n)
				}
			}
		}
	}
}
