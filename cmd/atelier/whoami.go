package main

import (
	"fmt"
	"strings"

	"atelier/client"
)

type whoamiCmd struct {
	jsonFlag
	serviceFlags
}

// Run prints the person, and the accounts for which they can act.
func (c whoamiCmd) Run(p *program) error {
	service, err := c.connect(p)
	if err != nil {
		return err
	}
	me, err := service.Me.Get(p.ctx)
	if err != nil {
		return err
	}
	if c.JSON {
		return p.printResult(true, me, "")
	}
	fmt.Fprintf(p.stdout, "%s on %s\n\n", cleanCells([]string{me.User.Email})[0], service.URL())
	table := [][]string{{"ACCOUNT", "KIND", "TOKENS", "STORAGE", "ID"}}
	for _, a := range me.Accounts {
		id := a.ID
		if a.Kind == "PERSONAL" {
			id = personalAccount
		}
		label := a.Label
		if id == service.TeamID() || id == personalAccount && service.TeamID() == "" {
			label += " (used)"
		}
		table = append(table, cleanCells([]string{label, strings.ToLower(a.Kind), showBalance(a.Balance), showBytes(a.Storage.UsedBytes), id}))
	}
	return p.printList(table)
}

func showBalance(b client.Balance) string {
	text := fmt.Sprint(b.Tokens)
	if b.FreeAllowanceLeft > 0 {
		text += fmt.Sprintf(" + %d free", b.FreeAllowanceLeft)
	}
	return text
}

// showBytes formats a number of bytes for people.
func showBytes(n int64) string {
	const unit = 1000
	if n < unit {
		return fmt.Sprintf("%d B", n)
	}
	value := float64(n) / unit
	for _, name := range []string{"kB", "MB", "GB", "TB"} {
		if value < unit || name == "TB" {
			return fmt.Sprintf("%.1f %s", value, name)
		}
		value /= unit
	}
	return ""
}
