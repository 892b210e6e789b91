package sqldb

import (
	"strconv"
	"strings"
)

// Args are the arguments of a query whose text is built step by step.
type Args []any

// Add appends a value and returns its placeholder, such as $3.
func (a *Args) Add(value any) string {
	*a = append(*a, value)
	return "$" + strconv.Itoa(len(*a))
}

// AddList appends values and returns their placeholders in parentheses, for the
// operator IN. There must be at least one value. The number of placeholders is
// rounded up to a power of four by repeating the last value. This keeps the
// number of different queries small, because on SQLite a prepared statement is
// cached for each query.
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

// ContainsPattern returns the pattern for the condition LIKE … ESCAPE '!' that
// matches every string which contains text.
func ContainsPattern(text string) string {
	return "%" + strings.NewReplacer("!", "!!", "%", "!%", "_", "!_").Replace(text) + "%"
}

// In returns the placeholders of values for the operator IN, like AddList, and
// all arguments of the query: the values in before, followed by the values of
// the list.
func In[T any](values []T, before ...any) (list string, args []any) {
	all := Args(before)
	list = AddList(&all, values)
	return list, all
}
