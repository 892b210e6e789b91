package company

import "slices"

// CoversRole reports whether the role r allows everything that the role o
// allows: all permissions, tools, plugins and spending. All comparisons of role
// limits are in this file.
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
	// The role o allows all present and future tools except those that it
	// blocks.
	return len(r.ToolsAllowed) == 0 && allMatch(r.ToolsBlocked, func(id string) bool { return !o.allowsTool(id) })
}

func (r TeamRole) coversKinds(o TeamRole) bool {
	return slices.Contains(r.PluginKinds, AnyKind) || allMatch(o.PluginKinds, func(kind string) bool { return slices.Contains(r.PluginKinds, kind) })
}

// coversSpend reports whether a member who stays within the limit o always
// stays within the limit s. In the worst case a member spends all tokens of o
// at the beginning of each window of o. Therefore the number of o's windows
// within one window of s is rounded up.
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
