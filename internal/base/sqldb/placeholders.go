package sqldb

import (
	"strconv"
	"strings"
)

// Args are the arguments of a query that is put together from parts. Each
// argument that is added gets the next placeholder.
type Args []any

// Add appends a value and returns its placeholder, such as $3.
func (a *Args) Add(value any) string {
	*a = append(*a, value)
	return "$" + strconv.Itoa(len(*a))
}

// AddList appends values and returns their placeholders in parentheses, for IN.
// There must be at least one value. The number of placeholders is rounded up to
// a power of four, and the last value fills the rest: this keeps the number of
// different query texts small, and SQLite's writer caches a prepared statement
// for each of them.
func AddList[T any](a *Args, values []T) string {
	room := 1
	for room < len(values) {
		room *= 4
	}

	var list strings.Builder
	list.WriteByte('(')
	for i := range room {
		if i > 0 {
			list.WriteString(", ")
		}
		list.WriteString(a.Add(values[min(i, len(values)-1)]))
	}
	list.WriteByte(')')
	return list.String()
}

// In returns the placeholders of values for IN, as AddList does, and all
// arguments of the query: the arguments before the list, then the list.
func In[T any](values []T, before ...any) (list string, args []any) {
	all := Args(before)
	list = AddList(&all, values)
	return list, all
}
