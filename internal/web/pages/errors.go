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

// statusOf returns the HTTP status of the page for a fault. The status for a
// wrong password is 403 and not 401, because a 401 must include a challenge to
// the browser (RFC 9110 section 15.5.2), but people sign in with a form.
func statusOf(c fault.Code) int {
	if status := httpd.Status[c]; status != http.StatusUnauthorized {
		return status
	}
	return http.StatusForbidden
}

// errorTitles are the headings of error pages, by HTTP status.
var errorTitles = map[int]string{
	http.StatusForbidden:           "Not allowed",
	http.StatusNotFound:            "Page not found",
	http.StatusMethodNotAllowed:    "Method not allowed",
	http.StatusTooManyRequests:     "Too many requests",
	http.StatusInternalServerError: "Internal error",
	http.StatusServiceUnavailable:  "The service is unavailable",
}

// unavailableRetry is the Retry-After of a fault.Unavailable that specifies no
// time.
const unavailableRetry = 2 * time.Second

// errorPage is the template data of an error page.
type errorPage struct {
	Title   string
	Message string
	Wait    string // time until a retry can succeed, in words; "" if waiting does not help
	TraceID string // for support requests; set on internal errors only
}

// showError responds with an error page, or redirects to the sign-in page if
// no person is signed in. An error that is not a fault is shown as an internal
// error; its text is only logged.
func (v *pageRequest) showError(err error) {
	if signin.IsSignedOut(err) {
		_ = v.redirectTo(v.signInFirst())
		return
	}
	f, ok := errors.AsType[*fault.Error](err)
	if !ok {
		f = fault.New(fault.Internal, "The request failed because of an internal error.")
	}
	code := statusOf(f.Code)
	p := errorPage{Title: cmp.Or(errorTitles[code], "The request failed"), Message: f.Message}
	if f.RetryAfter > 0 {
		p.Wait = formatWait(f.RetryAfter)
	}
	if code == http.StatusInternalServerError {
		p.TraceID = v.record.TraceID
	}
	if err := v.renderPage(code, "error", p, f); err != nil {
		panic(err) // httpd responds with 500 and logs the error
	}
}

// showFormAgain shows the page of a form again with the error messages of a
// fault. The entered values are kept, except passwords. If the person cannot
// correct the problem in the form, it returns err, which leads to an error
// page. besides lists additional fault codes that a person can correct in this
// form.
func (v *pageRequest) showFormAgain(page string, data any, err error, besides ...fault.Code) error {
	f, ok := errors.AsType[*fault.Error](err)
	usual := []fault.Code{fault.Invalid, fault.Unauthenticated, fault.Forbidden}
	if !ok || signin.IsSignedOut(err) || !slices.Contains(append(usual, besides...), f.Code) {
		return err
	}
	v.record.Err = err
	return v.renderPage(statusOf(f.Code), page, data, f)
}

// setRetryAfter sets the Retry-After header for a fault that can be retried.
func setRetryAfter(h http.Header, f *fault.Error) {
	wait := f.RetryAfter
	if wait == 0 && f.Code == fault.Unavailable {
		wait = unavailableRetry
	}
	if wait > 0 {
		h.Set("Retry-After", strconv.Itoa(int(math.Ceil(wait.Seconds()))))
	}
}
