package config

import "slices"

// nearest gives the name that a misspelt one was meant to be, if any: the one
// with the fewest edits, and at most one in three letters.
func nearest(misspelt string, names []string) (string, bool) {
	best := ""
	least := max(len(misspelt)/3, 1) + 1
	for _, name := range names {
		if n := editDistance(misspelt, name); n < least {
			best = name
			least = n
		}
	}
	return best, best != ""
}

// editDistance counts the letters to insert, delete, replace or swap with the
// next one to make b of a (optimal string alignment).
func editDistance(a, b string) int {
	before := make([]int, len(b)+1) // of the row before the last
	last := make([]int, len(b)+1)
	row := make([]int, len(b)+1)
	for j := range last {
		last[j] = j
	}
	for i := 1; i <= len(a); i++ {
		row[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			row[j] = min(last[j]+1, row[j-1]+1, last[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
		before, last, row = last, row, before
	}
	return last[len(b)]
}

// suggest ends a sentence about an unknown name with the one that it is like.
func suggest(misspelt string, names []string) string {
	slices.Sort(names)
	if name, ok := nearest(misspelt, names); ok {
		return "; did you mean " + name + "?"
	}
	return ""
}
