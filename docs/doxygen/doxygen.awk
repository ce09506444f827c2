# Makes Doxygen see the plain comments of the C header, line for line: the first is the file's, one right
# in front of a declaration is that one's, one behind a member is the member's, and "/* ---- Name" begins
# a group.
function flush_comment(opening,   i) {
  for (i = 1; i <= lines; i++) {
    if (i == 1) sub(/^\/\*/, opening, comment[i])
    print comment[i]
  }
  lines = 0
}
/^\/\* ---- / {
  gsub(/^\/\* -+ | -+ \*\/$/, "")
  print (group++ ? "/** \\} */ " : "") "/** \\name " $0
  getline  # an empty line
  print " * \\{ */"
  next
}
/^\/\*/ { inside = 1 }
inside {
  comment[++lines] = $0
  if (!/\*\/$/) next
  inside = 0
  if (whole_file++) next
  sub(/\*\/$/, "* \\file */", comment[lines])
  flush_comment("/**")
  next
}
lines { flush_comment(/^$/ ? "/*" : "/**") }
/^#ifdef __cplusplus/ && group { print "/** \\} */" }
!/^#endif/ { sub(/ \/\* /, " /**< ") }
{ print }
