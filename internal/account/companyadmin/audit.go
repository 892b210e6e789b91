package companyadmin

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"atelier/internal/base/audit"
	"atelier/internal/base/sqldb"
	"atelier/internal/money/budget"
	"atelier/internal/people/company"
	"atelier/internal/people/principal"
)

// ListAuditRecords returns the records of a company's audit log that the filter
// selects, newest first.
func (s *Companies) ListAuditRecords(ctx context.Context, caller principal.Principal, companyID string, f audit.Filter) (all []audit.Record, err error) {
	f.CompanyID = companyID
	if f.HasIndexOrder() {
		ctx = sqldb.WithIndexOrder(ctx)
	}
	err = s.db.readCompany(ctx, caller, companyID, requireManageMembers, func(tx *sqldb.Tx, _ companyAccess) error {
		all, err = audit.List(ctx, tx, f)
		return err
	})
	return all, err
}

// FormatValues encodes values as one JSON string. An audit log entry stores the
// states before and after a change as one string each; the string is "" if the
// object did not exist.
func FormatValues(values map[string]string) string {
	b, _ := json.Marshal(values) // cannot fail for a map of strings
	return string(b)
}

func joinPermissions(perms []company.Permission) string {
	texts := make([]string, len(perms))
	for i, p := range perms {
		texts[i] = string(p)
	}
	return strings.Join(texts, " ")
}

func describeRole(r company.Role) string {
	if r.Name == "" {
		return ""
	}
	return textOrNone(joinPermissions(r.Permissions))
}

func describeTeamRole(r *company.TeamRole) string {
	if r == nil {
		return ""
	}

	spend := "unlimited"
	if r.Spend != nil {
		spend = fmt.Sprintf("%d tokens in %d s", r.Spend.Tokens, int64(r.Spend.Window/time.Second))
	}
	allowed := "all"
	if len(r.ToolsAllowed) > 0 {
		allowed = joinShort(r.ToolsAllowed)
	}

	return FormatValues(map[string]string{
		"permissions":   textOrNone(joinPermissions(r.Permissions)),
		"plugin_kinds":  textOrNone(joinShort(r.PluginKinds)),
		"spend":         spend,
		"tools_allowed": allowed,
		"tools_blocked": textOrNone(joinShort(r.ToolsBlocked)),
	})
}

func describeBudget(d *budget.Draft) string {
	if d == nil {
		return ""
	}
	return FormatValues(map[string]string{"tokens": strconv.FormatInt(d.Tokens, 10), "hard": strconv.FormatBool(d.Hard)})
}

func teamRoleName(r *company.TeamRole) string {
	if r == nil {
		return ""
	}
	return r.Name
}

func textOrNone(text string) string {
	if text == "" {
		return "none"
	}
	return text
}

// maxListBytes is the maximum length of a list in an audit log entry. It is
// small because the strings of an entry are truncated to 500 bytes.
const maxListBytes = 60

// joinShort joins the strings with spaces. If the result is longer than
// maxListBytes, it returns the number of strings and a hash instead.
func joinShort(all []string) string {
	text := strings.Join(all, " ")
	if len(text) <= maxListBytes {
		return text
	}
	sum := sha256.Sum256([]byte(text))
	return fmt.Sprintf("%d, SHA-256 %s", len(all), hex.EncodeToString(sum[:16]))
}
