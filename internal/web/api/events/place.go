package events

import (
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
)

// place is the position of a client in the events of an account, which the ids
// of events contain. It consists of a time and board revisions:
//
//	1794819600000000,PagW53lsaa2KiGgg5wR4:12
type place struct {
	at     time.Time        // the client has received all changes of the account up to this time
	boards map[string]int64 // the revisions of the boards that the client has received, by board id
}

func (p place) String() string {
	text := strconv.FormatInt(p.at.UnixMicro(), 10)
	for _, id := range slices.Sorted(maps.Keys(p.boards)) {
		text += "," + id + ":" + strconv.FormatInt(p.boards[id], 10)
	}
	return text
}

// parsePlace parses the id of an event. ok is false if it is not the id of an
// event of an account.
func parsePlace(text string) (p place, ok bool) {
	parts := strings.Split(text, ",")
	if len(parts) > 1+maxBoards {
		return place{}, false
	}
	micros, err := strconv.ParseInt(parts[0], 10, 64)
	if err != nil || micros < 0 {
		return place{}, false
	}

	p = place{at: time.UnixMicro(micros).UTC(), boards: map[string]int64{}}
	for _, part := range parts[1:] {
		id, number, _ := strings.Cut(part, ":")
		revision, err := strconv.ParseInt(number, 10, 64)
		if err != nil || revision < 0 {
			return place{}, false
		}
		p.boards[id] = revision
	}
	return p, true
}
