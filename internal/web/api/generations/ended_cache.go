package api

import "sync"

// shownRun is a run that has ended, as an account shows it to somebody.
type shownRun struct{ id, accountID, viewerID string }

// endedRuns are the encoded records of runs that have ended, for as long as
// their addresses would come out the same: this second. What can still change
// of such a run, whether its webhook came through and its files are there, is
// up to a second old here.
type endedRuns struct {
	mu     sync.Mutex
	second int64
	bodies map[shownRun][]byte
}

// get gives the record that was put in the same second, nil where there is none.
func (e *endedRuns) get(key shownRun, second int64) []byte {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.second != second {
		return nil
	}
	return e.bodies[key]
}

func (e *endedRuns) put(key shownRun, second int64, body []byte) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.second != second || len(e.bodies) >= maxEnded {
		e.second = second
		e.bodies = map[shownRun][]byte{}
	}
	e.bodies[key] = body
}

// forget drops all, when somebody changed what they show.
func (e *endedRuns) forget() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.bodies = map[shownRun][]byte{}
}

// maxEnded bounds how many records are kept.
const maxEnded = 4096
