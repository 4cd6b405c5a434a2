/* What Wine 8 lacks and Rust programs need. Never shipped, never used on Windows.
 *
 * Wine has no bcryptprimitives.dll, from which Rust's standard library takes its random bytes on Windows 10 and later.
 * ProcessPrng is its one function, served by the generator that Wine has.
 *
 * Wine's server also loses a program now and then while it starts: the new process finds its connection to the server
 * closed and ends before it has a thread, and CreateProcess answers ERROR_INTERNAL_ERROR, which is what Wine says of a
 * process that ended with status 0 before it was ready. Nothing of the program ran, so it can be started again. Every
 * Rust program loads this library, so this is the one place that all starts of programs pass. */
#include <windows.h>

BOOLEAN NTAPI SystemFunction036(PVOID buffer, ULONG length);

__declspec(dllexport) BOOL WINAPI ProcessPrng(PBYTE buffer, SIZE_T length) {
    while (length > 0) {
        ULONG part = length > 0x10000000 ? 0x10000000 : (ULONG)length;
        if (!SystemFunction036(buffer, part)) return FALSE;
        buffer += part;
        length -= part;
    }
    return TRUE;
}

typedef BOOL(WINAPI *create_process)(LPCWSTR, LPWSTR, LPSECURITY_ATTRIBUTES, LPSECURITY_ATTRIBUTES, BOOL, DWORD, LPVOID,
                                     LPCWSTR, LPSTARTUPINFOW, LPPROCESS_INFORMATION);

static create_process real_create_process;

/* A test can have starts fail as if Wine had lost the program: so many of every start's first attempts. */
static int pretended_losses(void) {
    WCHAR text[8];
    DWORD length = GetEnvironmentVariableW(L"WAYLAY_WINE_LOSES", text, 8);
    return length == 1 ? text[0] - L'0' : 0;
}

static BOOL WINAPI start_until_not_lost(LPCWSTR program, LPWSTR line, LPSECURITY_ATTRIBUTES process,
                                        LPSECURITY_ATTRIBUTES thread, BOOL inherit, DWORD flags, LPVOID environment,
                                        LPCWSTR folder, LPSTARTUPINFOW startup, LPPROCESS_INFORMATION started) {
    int losses = pretended_losses();
    for (int attempt = 1;; attempt++) {
        BOOL answer = FALSE;
        if (attempt <= losses)
            SetLastError(ERROR_INTERNAL_ERROR);
        else
            answer = real_create_process(program, line, process, thread, inherit, flags, environment, folder, startup, started);
        if (answer || GetLastError() != ERROR_INTERNAL_ERROR || attempt == 5) return answer;
        Sleep(20 * attempt);
    }
}

/* Replaces the program's import of CreateProcessW, which the loader has bound before any library is told of its start. */
static void guard_starts(void) {
    BYTE *base = (BYTE *)GetModuleHandleW(NULL);
    IMAGE_NT_HEADERS *headers = (IMAGE_NT_HEADERS *)(base + ((IMAGE_DOS_HEADER *)base)->e_lfanew);
    IMAGE_DATA_DIRECTORY imports = headers->OptionalHeader.DataDirectory[IMAGE_DIRECTORY_ENTRY_IMPORT];
    real_create_process = (create_process)(void *)GetProcAddress(GetModuleHandleW(L"kernel32.dll"), "CreateProcessW");
    if (!imports.VirtualAddress || !real_create_process) return;
    IMAGE_IMPORT_DESCRIPTOR *library = (IMAGE_IMPORT_DESCRIPTOR *)(base + imports.VirtualAddress);
    for (; library->Name; library++) {
        for (void **entry = (void **)(base + library->FirstThunk); *entry; entry++) {
            DWORD before;
            if (*entry != (void *)real_create_process) continue;
            if (!VirtualProtect(entry, sizeof *entry, PAGE_READWRITE, &before)) continue;
            *entry = (void *)start_until_not_lost;
            VirtualProtect(entry, sizeof *entry, before, &before);
        }
    }
}

BOOL WINAPI DllMain(HINSTANCE library, DWORD reason, LPVOID reserved) {
    (void)library, (void)reserved;
    if (reason == DLL_PROCESS_ATTACH) guard_starts();
    return TRUE;
}
