// main() of every tool. TOOL/main.cpp defines TOOL_main(), and is compiled together with the tool's other sources,
// whose headers take most of the time. Unit tests link these sources too, and have a main() of their own.

int CMT_MAIN(int argc, char** argv);

int main(int argc, char** argv) { return CMT_MAIN(argc, argv); }
