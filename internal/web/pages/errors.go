package pages

import (
	"cmp"
	"errors"
	"math"
	"net/http"
	"slices"
	"strconv"
	"time"

	"atelier/internal/account/signin"
	"atelier/internal/base/fault"
	"atelier/internal/web/httpd"
)

// statusOf is what a code is on a page. A wrong password is 403, since 401 would
// owe the browser a challenge (RFC 9110 section 15.5.2) and people sign in with
// a form.
func statusOf(c fault.Code) int {
	if status := httpd.Status[c]; status != http.StatusUnauthorized {
		return status
	}
	return http.StatusForbidden
}

// titles are what error pages are headed with.
var titles = map[int]string{
	http.StatusForbidden:           "That is not allowed",
	http.StatusNotFound:            "There is nothing here",
	http.StatusMethodNotAllowed:    "Not this way",
	http.StatusTooManyRequests:     "Wait a little",
	http.StatusInternalServerError: "Something went wrong",
	http.StatusServiceUnavailable:  "The service is not ready",
}

// awayFor is what a browser is told to wait when nobody knows how long
// something will be away.
const awayFor = 2 * time.Second

// problem is what an error page shows.
type problem struct {
	Title   string
	Message string
	Wait    string // in words, "" where waiting does not help
	TraceID string // where somebody should look into it
}

// fail answers with a page that says what went wrong. Whoever has to sign in
// first is sent there. What is no fault is an accident: the person learns that
// it happened, the log learns the rest.
func (v *visit) fail(err error) {
	if signin.IsSignedOut(err) {
		_ = v.to(v.signInFirst())
		return
	}
	f, ok := errors.AsType[*fault.Error](err)
	if !ok {
		f = fault.New(fault.Internal, "Something went wrong on our side.")
	}
	code := statusOf(f.Code)
	p := problem{Title: cmp.Or(titles[code], "That did not work"), Message: f.Message}
	if f.RetryAfter > 0 {
		p.Wait = waitFor(f.RetryAfter)
	}
	if code == http.StatusInternalServerError {
		p.TraceID = v.rec.TraceID
	}
	if err := v.answer(code, "error", p, f); err != nil {
		panic(err) // httpd answers and logs it
	}
}

// again shows the page of a form once more, with what was wrong: its values are
// kept, but for passwords. What the person cannot mend there is given back for
// a page of its own. Codes besides the usual ones can be mended as well.
func (v *visit) again(page string, data any, err error, besides ...fault.Code) error {
	f, ok := errors.AsType[*fault.Error](err)
	usual := []fault.Code{fault.Invalid, fault.Unauthenticated, fault.Forbidden}
	if !ok || signin.IsSignedOut(err) || !slices.Contains(append(usual, besides...), f.Code) {
		return err
	}
	v.rec.Err = err
	return v.answer(statusOf(f.Code), page, data, f)
}

// retryAfter tells programs what the page tells people.
func retryAfter(h http.Header, f *fault.Error) {
	wait := f.RetryAfter
	if wait == 0 && f.Code == fault.Unavailable {
		wait = awayFor
	}
	if wait > 0 {
		h.Set("Retry-After", strconv.Itoa(int(math.Ceil(wait.Seconds()))))
	}
}
