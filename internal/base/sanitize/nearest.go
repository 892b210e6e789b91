package sanitize

import "strings"

// Nearest returns the candidate that is most similar to a misspelt word,
// ignoring case. It returns "" if none is similar enough: at most a third of
// the characters, and in short words at most one, may differ.
func Nearest(word string, candidates []string) string {
	best := ""
	least := max(len([]rune(word))/3, 1) + 1
	for _, one := range candidates {
		if d := EditDistance(strings.ToLower(word), strings.ToLower(one)); d < least {
			best = one
			least = d
		}
	}
	return best
}

// EditDistance returns the smallest number of insertions, deletions,
// replacements and swaps of adjacent characters that change one string into the
// other (the optimal string alignment distance).
func EditDistance(from, to string) int {
	a := []rune(from)
	b := []rune(to)
	var before []int // the row before the previous one
	last := make([]int, len(b)+1)
	for j := range last {
		last[j] = j
	}
	for i := 1; i <= len(a); i++ {
		row := make([]int, len(b)+1)
		row[0] = i
		for j := 1; j <= len(b); j++ {
			other := 1
			if a[i-1] == b[j-1] {
				other = 0
			}
			row[j] = min(last[j]+1, row[j-1]+1, last[j-1]+other)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
		before = last
		last = row
	}
	return last[len(b)]
}
