package library

import (
	"context"
	"fmt"
	"strings"
	"unicode/utf8"

	"atelier/internal/base/fault"
	"atelier/internal/base/sqldb"
)

// The maximum length of a search in characters, and its maximum number of
// words. Each word is one comparison with the prompt of each item.
const (
	MaxSearchLength = 200
	maxSearchWords  = 10
)

// SearchText returns the form of a prompt in which searches find words: in
// lower case. It is stored with each result.
func SearchText(prompt string) string { return strings.ToLower(prompt) }

// words returns the words that the search text of an item must contain.
func (f Filter) words() []string { return strings.Fields(SearchText(f.Search)) }

func (f Filter) checkSearch() error {
	var problem string
	switch {
	case !utf8.ValidString(f.Search) || strings.ContainsRune(f.Search, 0):
		problem = "The search must be text in UTF-8."
	case utf8.RuneCountInString(f.Search) > MaxSearchLength:
		problem = fmt.Sprintf("The search must have at most %d characters.", MaxSearchLength)
	case len(f.words()) > maxSearchWords:
		problem = fmt.Sprintf("The search must have at most %d words.", maxSearchWords)
	default:
		return nil
	}
	return fault.New(fault.Invalid, problem).On("q")
}

// FillSearchTexts stores the search text of results that were written by a
// release without one. Searches do not find a result before that.
func (l *Library) FillSearchTexts(ctx context.Context) error {
	for last := ""; ; {
		var results []unsearchable
		err := l.DB.Write(ctx, func(tx *sqldb.Tx) (err error) {
			results, err = unsearchableAfter(ctx, tx, last)
			if err != nil {
				return err
			}
			for _, r := range results {
				if err := setSearchText(ctx, tx, r.id, SearchText(r.prompt)); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil || len(results) == 0 {
			return err
		}
		last = results[len(results)-1].id
	}
}
