package company

import "slices"

// CoversRole reports whether the role allows everything that o allows: whoever is
// held to r could do, use and spend all that o lets them. It is the one place
// where the limits of roles are compared.
func (r TeamRole) CoversRole(o TeamRole) bool {
	return allMatch(o.Permissions, r.May) && r.coversTools(o) && r.coversKinds(o) && r.Spend.coversSpend(o.Spend)
}

func (r TeamRole) allowsTool(id string) bool {
	return (len(r.ToolsAllowed) == 0 || slices.Contains(r.ToolsAllowed, id)) && !slices.Contains(r.ToolsBlocked, id)
}

func (r TeamRole) coversTools(o TeamRole) bool {
	if len(o.ToolsAllowed) > 0 {
		return allMatch(o.ToolsAllowed, func(id string) bool { return !o.allowsTool(id) || r.allowsTool(id) })
	}
	// o allows every tool there will ever be, but for those that it blocks.
	return len(r.ToolsAllowed) == 0 && allMatch(r.ToolsBlocked, func(id string) bool { return !o.allowsTool(id) })
}

func (r TeamRole) coversKinds(o TeamRole) bool {
	return slices.Contains(r.PluginKinds, AnyKind) || allMatch(o.PluginKinds, func(kind string) bool { return slices.Contains(r.PluginKinds, kind) })
}

// coversSpend reports whether nobody who keeps to o ever goes beyond s. Somebody can
// spend o whole at the beginning of each of its windows, and as many of these
// begin within one window of s as it takes to fill it.
func (s *Spend) coversSpend(o *Spend) bool {
	if s == nil {
		return true
	}
	if o == nil {
		return false
	}
	windows := int64((s.Window + o.Window - 1) / o.Window)
	return o.Tokens <= s.Tokens/windows
}
