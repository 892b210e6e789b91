// Package sample makes the long tables of tests shorter where the race detector
// makes every case slow.
//
// make test runs a package with long tables twice: with the race detector and
// -short, where each table is a sample, and without both, where it is whole.
package sample

import "testing"

// Of returns all items or, with -short, every nth. An n that shares no factor
// with the sizes of the table's dimensions draws from all rows and columns.
func Of[T any](items []T, n int) []T {
	if !testing.Short() {
		return items
	}
	var some []T
	for i := 0; i < len(items); i += n {
		some = append(some, items[i])
	}
	return some
}

// Skip skips a test with -short, because it takes long and looks for no races.
func Skip(t testing.TB) {
	t.Helper()
	if testing.Short() {
		t.Skip("with -short: runs without the race detector only")
	}
}
