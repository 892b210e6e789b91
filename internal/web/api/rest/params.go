package rest

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"

	"atelier/internal/base/fault"
	"atelier/internal/base/ids"
	"atelier/internal/web/api/wire"
)

// Params reads query parameters and collects all errors in them.
type Params struct {
	Values url.Values
	err    *fault.Error
}

// ParamsOf parses the URL query of a request.
func ParamsOf(r *http.Request) *Params {
	values, err := url.ParseQuery(r.URL.RawQuery)
	for name, all := range values {
		// A parameter given twice with the same value counts once.
		if !slices.ContainsFunc(all, func(value string) bool { return value != all[0] }) {
			values[name] = all[:1]
		}
	}

	p := &Params{Values: values}
	if err != nil {
		p.AddProblem("query", "The query string is not correctly encoded.")
	}
	return p
}

// AddProblem records that a query parameter is invalid.
func (p *Params) AddProblem(path, message string) {
	if p.err == nil {
		p.err = fault.New(fault.Invalid, "Some parameters are not valid.")
	}
	p.err = p.err.Field(path, message)
}

// Err returns one error with all invalid parameters, or nil.
func (p *Params) Err() error {
	if p.err == nil {
		return nil
	}
	return p.err
}

// ReadText returns the value of a parameter that may occur only once. It
// returns "" if the parameter is absent or empty.
func (p *Params) ReadText(name string) string {
	switch all := p.Values[name]; len(all) {
	case 0:
		return ""
	case 1:
		return all[0]
	default:
		p.AddProblem(name, "Send this parameter only once.")
		return ""
	}
}

// ReadLimit returns the page size from the parameter limit.
func (p *Params) ReadLimit(defaultSize, maxSize int) int {
	return p.ReadNumber("limit", defaultSize, 1, maxSize)
}

// ReadNumber returns the value of a parameter that is a whole number from least
// to most. It returns defaultValue if the parameter is absent or invalid.
func (p *Params) ReadNumber(name string, defaultValue, least, most int) int {
	text := p.ReadText(name)
	if text == "" && !p.Values.Has(name) {
		return defaultValue
	}

	n, err := strconv.Atoi(text)
	if err != nil || strconv.Itoa(n) != text || n < least || n > most {
		p.AddProblem(name, fmt.Sprintf("Must be a whole number from %d to %d.", least, most))
		return defaultValue
	}
	return n
}

// ReadMedium returns the value of the parameter type, which is a kind of media.
// It returns "" if the parameter is absent or invalid.
func ReadMedium(p *Params) string {
	medium := p.ReadText("type")
	if medium != "" && !wire.Medium(medium).Valid() {
		p.AddProblem("type", "Must be one of IMG, VID, AUDIO, ASSET_3D and TEXT.")
		return ""
	}
	return medium
}

// ReadID returns the value of a parameter that is an id. It returns "" if the
// parameter is absent or invalid.
func (p *Params) ReadID(name string) string {
	id := p.ReadText(name)
	if id != "" && !ids.Valid(id) {
		p.AddProblem(name, "Must be a valid id.")
		return ""
	}
	return id
}

// ReadUUID returns the value of a parameter that is the id of a run. It returns
// "" if the parameter is absent or invalid.
func (p *Params) ReadUUID(name string) string {
	id := p.ReadText(name)
	if u, err := uuid.Parse(id); id != "" && (err != nil || u.String() != id) {
		p.AddProblem(name, "Must be a valid id.")
		return ""
	}
	return id
}

// ReadBool returns the value of a parameter that is true or false. It returns
// nil if the parameter is absent or invalid.
func (p *Params) ReadBool(name string) *bool {
	switch text := p.ReadText(name); text {
	case "":
		return nil
	case "true", "false":
		value := text == "true"
		return &value
	}
	p.AddProblem(name, "Must be true or false.")
	return nil
}

// ReadTime returns the value of a parameter that is a time. It returns the
// zero time if the parameter is absent.
func (p *Params) ReadTime(name string) time.Time {
	text := p.ReadText(name)
	if text == "" {
		return time.Time{}
	}

	at, err := parseTime(text)
	if err != nil {
		p.AddProblem(name, "Must be a time such as 2026-11-15T09:30:00Z.")
	}
	return at
}

// The range of times that the database stores.
var (
	earliest = time.Unix(0, 0).UTC()
	latest   = time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC)
)

// parseTime parses an RFC 3339 time. Times before earliest become earliest, and
// times after latest become latest. The result is therefore never the zero
// time, which would mean that no time was given, and the database can always
// store it.
func parseTime(text string) (time.Time, error) {
	at, err := time.Parse(time.RFC3339Nano, strings.ToUpper(text)) // T and Z may be in lower case (section 5.6)
	switch {
	case err != nil:
		return time.Time{}, err
	case at.Before(earliest):
		return earliest, nil
	case at.After(latest):
		return latest, nil
	}
	return at, nil
}
