# Completion of atelier for zsh: source <(atelier completion zsh)
_atelier() {
	local line candidate text
	local -a closed closedTexts open openTexts
	line="${(j: :)words[1,CURRENT]}"
	while IFS=$'\t' read -r candidate text; do
		[[ -n $candidate ]] || continue
		if [[ $candidate == *[=/,] ]]; then
			open+=("$candidate")
			openTexts+=("$candidate${text:+  -- $text}")
		else
			closed+=("$candidate")
			closedTexts+=("$candidate${text:+  -- $text}")
		fi
	done < <(atelier __complete -- "$line" 2>/dev/null)
	(( $#closed )) && compadd -l -d closedTexts -a closed
	(( $#open )) && compadd -l -S '' -d openTexts -a open
}
compdef _atelier atelier
