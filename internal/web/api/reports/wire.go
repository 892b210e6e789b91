package reports

import (
	"slices"
	"strconv"
	"time"

	"atelier/internal/money/report"
	"atelier/internal/web/api/rest"
	"atelier/internal/web/api/wire"
)

// deletedPerson is the name shown for people who have deleted their account.
const deletedPerson = "deleted person"

func personName(email string) string {
	if email == "" {
		return deletedPerson
	}
	return email
}

// asStorageReport converts the storage used by teams to its API representation.
// accountLimit is the limit in bytes of teams that have no limit of their own.
func asStorageReport(all []report.TeamStorage, accountLimit int64) *wire.StorageReport {
	r := &wire.StorageReport{Teams: make([]wire.TeamStorage, 0, len(all))}
	for _, t := range all {
		limit := accountLimit
		if t.Limit != nil {
			limit = *t.Limit
		}
		r.UsedBytes += t.Used
		r.Teams = append(r.Teams, wire.TeamStorage{TeamID: t.TeamID, TeamName: t.Name, UsedBytes: t.Used, LimitBytes: rest.NumberOrNull(limit)})
	}
	return r
}

func asCount(c report.Count) wire.UsageCount {
	return wire.UsageCount{
		Runs:              c.Runs,
		Succeeded:         c.Succeeded,
		Failed:            c.Failed,
		Cancelled:         c.Cancelled,
		Results:           c.Results,
		TokensCharged:     c.TokensCharged,
		FreeAllowanceUsed: c.AllowanceUsed,
		GenerationSeconds: rest.DecimalSeconds(c.Took),
	}
}

// usageTools returns the ids of the tools in rows of a report. Some are "" or
// occur several times.
func usageTools(rows []report.Row) (ids []string) {
	for _, r := range rows {
		ids = append(ids, r.ToolID, r.FlowID)
	}
	return ids
}

// runTools returns the ids of the tools of runs. Some occur several times.
func runTools(rows []report.Run) (ids []string) {
	for _, r := range rows {
		ids = append(ids, r.ToolID)
	}
	return ids
}

// asUsageRows converts rows of a report to their API representation. tools has
// the names of tools by id.
func asUsageRows(rows []report.Row, by []report.Dimension, tools map[string]string) []wire.UsageRow {
	all := make([]wire.UsageRow, 0, len(rows))
	for _, r := range rows {
		c := asCount(r.Count)
		one := wire.UsageRow{
			Runs:              c.Runs,
			Succeeded:         c.Succeeded,
			Failed:            c.Failed,
			Cancelled:         c.Cancelled,
			Results:           c.Results,
			TokensCharged:     c.TokensCharged,
			FreeAllowanceUsed: c.FreeAllowanceUsed,
			GenerationSeconds: c.GenerationSeconds,
		}
		for _, d := range by {
			switch d {
			case report.Day:
				one.Day = &r.Day
			case report.Team:
				one.TeamID = &r.TeamID
				one.TeamName = &r.TeamName
			case report.Person:
				one.UID = &r.PersonID
				one.Email = new(wire.OrNull(r.Email))
				one.Person = new(personName(r.Email))
			case report.Tool:
				one.ToolID = &r.ToolID
				one.ToolName = new(wire.OrNull(tools[r.ToolID]))
			case report.Plugin:
				one.Plugin = &r.Plugin
			case report.Credential:
				one.Credential = &r.Credential
				one.CredentialID = &r.CredentialID
				one.CredentialName = new(wire.OrNull(r.CredentialName))
			case report.Flow:
				one.FlowID = &r.FlowID
				one.FlowName = new(wire.OrNull(tools[r.FlowID]))
			}
		}
		all = append(all, one)
	}
	return all
}

func asRunRows(rows []report.Run, tools map[string]string) []wire.RunRow {
	all := make([]wire.RunRow, 0, len(rows))
	for _, r := range rows {
		all = append(all, wire.RunRow{
			RequestID:         r.ID,
			Status:            r.Status,
			ErrorCode:         rest.TextOrNull(r.ErrorCode),
			Created:           rest.Moment(r.Created),
			Started:           rest.MomentOrNull(r.Started),
			Finished:          rest.Moment(r.Finished),
			TeamID:            r.TeamID,
			TeamName:          r.TeamName,
			UID:               r.PersonID,
			Email:             rest.TextOrNull(r.Email),
			Person:            personName(r.Email),
			ToolID:            r.ToolID,
			ToolName:          rest.TextOrNull(tools[r.ToolID]),
			Plugin:            r.Plugin,
			Credential:        r.Credential,
			CredentialID:      r.CredentialID,
			CredentialName:    rest.TextOrNull(r.CredentialName),
			NumResults:        r.Asked,
			Results:           r.Results,
			TokensCharged:     r.TokensCharged,
			FreeAllowanceUsed: r.AllowanceUsed,
			GenerationSeconds: rest.DecimalSeconds(runTime(r)),
		})
	}
	return all
}

// runTime returns how long a run took, truncated to milliseconds as in the
// totals.
func runTime(r report.Run) time.Duration {
	if r.Started.IsZero() {
		return 0
	}
	return r.Finished.Sub(r.Started).Truncate(time.Millisecond)
}

// groupColumns are the names of the CSV columns of each dimension.
var groupColumns = map[report.Dimension][]string{
	report.Day:        {"day"},
	report.Team:       {"team_id", "team_name"},
	report.Person:     {"uid", "email", "person"},
	report.Tool:       {"tool_id", "tool_name"},
	report.Plugin:     {"plugin"},
	report.Credential: {"credential", "credential_id", "credential_name"},
	report.Flow:       {"flow_id", "flow_name"},
}

// usageColumns returns the names of the CSV columns that usageCells fills: the
// columns of the dimensions, then the totals. The dimensions are in the order
// of report.Dimensions, regardless of the order in the request.
func usageColumns(by []report.Dimension) (all []string) {
	for _, d := range report.Dimensions {
		if slices.Contains(by, d) {
			all = append(all, groupColumns[d]...)
		}
	}
	return append(all, "runs", "succeeded", "failed", "cancelled", "results", "tokens_charged", "free_allowance_used", "generation_seconds")
}

func usageCells(rows []report.Row, by []report.Dimension, tools map[string]string) (all [][]string) {
	for _, r := range rows {
		groups := map[report.Dimension][]string{
			report.Day:        {r.Day},
			report.Team:       {r.TeamID, r.TeamName},
			report.Person:     {r.PersonID, r.Email, personName(r.Email)},
			report.Tool:       {r.ToolID, tools[r.ToolID]},
			report.Plugin:     {r.Plugin},
			report.Credential: {r.Credential, r.CredentialID, r.CredentialName},
			report.Flow:       {r.FlowID, tools[r.FlowID]},
		}
		var line []string
		for _, d := range report.Dimensions {
			if slices.Contains(by, d) {
				line = append(line, escapeCells(groups[d]...)...)
			}
		}
		line = append(line, formatNumbers(r.Runs, r.Succeeded, r.Failed, r.Cancelled, r.Results, r.TokensCharged, r.AllowanceUsed)...)
		all = append(all, append(line, formatSeconds(r.Took)))
	}
	return all
}

// runColumns are the names of the CSV columns that runCells fills.
var runColumns = []string{
	"request_id", "status", "error_code", "created", "started", "finished", "team_id", "team_name", "uid", "email", "person", "tool_id", "tool_name", "plugin",
	"credential", "credential_id", "credential_name", "num_results", "results", "tokens_charged", "free_allowance_used", "generation_seconds",
}

func runCells(rows []report.Run, tools map[string]string) (all [][]string) {
	for _, r := range rows {
		started := ""
		if !r.Started.IsZero() {
			started = rest.Moment(r.Started).Format(time.RFC3339)
		}
		line := escapeCells(
			r.ID, r.Status, r.ErrorCode, rest.Moment(r.Created).Format(time.RFC3339), started, rest.Moment(r.Finished).Format(time.RFC3339),
			r.TeamID, r.TeamName, r.PersonID, r.Email, personName(r.Email), r.ToolID, tools[r.ToolID], r.Plugin,
			r.Credential, r.CredentialID, r.CredentialName,
		)
		line = append(line, formatNumbers(r.Asked, r.Results, r.TokensCharged, r.AllowanceUsed)...)
		all = append(all, append(line, formatSeconds(runTime(r))))
	}
	return all
}

// escapeCells applies escapeFormula to each string.
func escapeCells(texts ...string) []string {
	for i, text := range texts {
		texts[i] = escapeFormula(text)
	}
	return texts
}

func formatNumbers(numbers ...int64) (texts []string) {
	for _, n := range numbers {
		texts = append(texts, strconv.FormatInt(n, 10))
	}
	return texts
}

func formatSeconds(d time.Duration) string {
	return strconv.FormatFloat(rest.DecimalSeconds(d), 'f', -1, 64)
}
