package client

import "iter"

// eachItem iterates over the items of all pages, from the given cursor on.
func eachItem[T any](cursor string, readPage func(cursor string) ([]T, *string, error)) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		at := cursor // the iterator may be used again
		for {
			items, next, err := readPage(at)
			if err != nil {
				var none T
				yield(none, err)
				return
			}
			for _, item := range items {
				if !yield(item, nil) {
					return
				}
			}
			if next == nil || *next == "" {
				return
			}
			at = *next
		}
	}
}
