# Completion of atelier for bash: source <(atelier completion bash)
_atelier() {
	local line="${COMP_LINE:0:COMP_POINT}" candidate word prefix
	COMPREPLY=()
	# bash breaks words at these characters and replaces only the last part.
	prefix="${line##*[[:space:]]}"
	prefix="${prefix%"${prefix##*[=:@]}"}"
	while IFS=$'\t' read -r candidate _; do
		[[ -n $candidate ]] || continue
		word="${candidate#"$prefix"}"
		[[ $word == *[=/,] ]] && compopt -o nospace
		printf -v word '%q' "$word"
		COMPREPLY+=("$word")
	done < <(atelier __complete -- "$line" 2>/dev/null)
}
complete -o nosort -F _atelier atelier
