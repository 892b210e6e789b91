package sqldb

import (
	"strconv"
	"strings"
)

// In gives the placeholders of values for IN, in parentheses, and all arguments
// with those that come before. There must be some values. Their number is
// rounded up, the last one standing for the rest, so that there are few texts
// of a query: SQLite's writer keeps each one that it has prepared.
func In[T any](values []T, before ...any) (places string, args []any) {
	room := 1
	for room < len(values) {
		room *= 4
	}
	args = before
	var b strings.Builder
	for i := range room {
		args = append(args, values[min(i, len(values)-1)])
		b.WriteString(", $")
		b.WriteString(strconv.Itoa(len(args)))
	}
	return "(" + b.String()[2:] + ")", args
}
