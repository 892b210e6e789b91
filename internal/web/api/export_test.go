package api

import (
	"atelier/internal/account"
	"atelier/internal/web/api/rest"
)

// Routes lists every operation as "GET /api/v2/tools".
func Routes() []string {
	var all []string
	for _, rt := range allRoutes() {
		all = append(all, rt.Method+" "+rt.Path)
	}
	return all
}

func allRoutes() []rest.Route {
	s, err := newServer(Parts{Accounts: &account.Services{}, OpenAI: &OpenAI{}, MCP: &MCP{}, OAuth: &OAuth{Registers: true}})
	if err != nil {
		panic(err)
	}
	return s.allRoutes()
}
