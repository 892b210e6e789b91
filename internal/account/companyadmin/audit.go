package companyadmin

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"atelier/internal/money/budget"
	"atelier/internal/people/company"
)

// How the audit log writes what was and what is. What does not exist is "".

// asText writes several values as one.
func asText(values map[string]string) string {
	b, _ := json.Marshal(values) // a map of texts can always be written
	return string(b)
}

// names writes permissions.
func names(perms []company.Permission) string {
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
	return orNone(names(r.Permissions))
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
		allowed = listed(r.ToolsAllowed)
	}
	return asText(map[string]string{
		"permissions":   orNone(names(r.Permissions)),
		"plugin_kinds":  orNone(listed(r.PluginKinds)),
		"spend":         spend,
		"tools_allowed": allowed,
		"tools_blocked": orNone(listed(r.ToolsBlocked)),
	})
}

func describeBudget(d *budget.Draft) string {
	if d == nil {
		return ""
	}
	return asText(map[string]string{"tokens": strconv.FormatInt(d.Tokens, 10), "hard": strconv.FormatBool(d.Hard)})
}

// describeUser says no more than whether somebody is active: all else that a
// directory has of them is personal, and the log cannot forget.
func describeUser(active bool) string {
	if active {
		return "active"
	}
	return "switched off"
}

func roleName(r *company.TeamRole) string {
	if r == nil {
		return ""
	}
	return r.Name
}

func orNone(text string) string {
	if text == "" {
		return "none"
	}
	return text
}

// maxListed bounds a list in the log, whose texts are cut after 500 bytes.
const maxListed = 60

// listed writes a list, one that is too long by its length and hash.
func listed(all []string) string {
	text := strings.Join(all, " ")
	if len(text) <= maxListed {
		return text
	}
	sum := sha256.Sum256([]byte(text))
	return fmt.Sprintf("%d, SHA-256 %s", len(all), hex.EncodeToString(sum[:16]))
}
